import ArgumentParser
import Client
import FoundationEssentials
import Model
import SystemIO

struct RemoteCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "remote",
        abstract: "Let other machines reach the broker over TLS.",
        discussion: """
            The remote listener is off by default. Clients need a grant, as on this machine. No remote client is an \
            owner, and none can read secrets. The state is kept when the broker restarts; api.remote in the \
            configuration has precedence.

              patchbay remote on
              patchbay remote on 192.168.1.7:7283
              patchbay remote off
              patchbay remote status --json
              patchbay remote certificate --out ca.pem
            """,
        subcommands: [
            RemoteOnCommand.self, RemoteOffCommand.self, RemoteStatusCommand.self, RemoteCertificateCommand.self,
        ],
        defaultSubcommand: RemoteStatusCommand.self
    )
}

struct RemoteOnCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "on",
        abstract: "Turn the remote listener on.",
        discussion: """
            Listens on \(RemoteSpec.standardAddress) by default. Use [::]:7283 for IPv6 and IPv4.

              patchbay remote on
              patchbay remote on [::]:7283
            """
    )

    @Argument(help: ArgumentHelp("Listen on this numeric address and port.", valueName: "address:port"))
    var address: String?
    @OptionGroup var format: JSONOption
    @OptionGroup var options: GlobalOptions

    func run() async throws {
        let status = try await options.client.setRemote(RemoteSpec(enabled: true, address: address))
        try RemoteStatusText(status).show(format, on: options.output)
    }
}

struct RemoteOffCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "off",
        abstract: "Turn the remote listener off and close its connections.",
        discussion: """
            The broker keeps its key and the grants of remote clients for the next `patchbay remote on`.

              patchbay remote off
            """
    )

    @OptionGroup var format: JSONOption
    @OptionGroup var options: GlobalOptions

    func run() async throws {
        let status = try await options.client.setRemote(RemoteSpec(enabled: false))
        try RemoteStatusText(status).show(format, on: options.output)
    }
}

struct RemoteStatusCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status",
        abstract: "Show the remote listener: its addresses, key pin, connections and refused handshakes.",
        discussion: """
              patchbay remote status
              patchbay remote status --json | jq -r .pin
            """
    )

    @OptionGroup var format: JSONOption
    @OptionGroup var options: GlobalOptions

    func run() async throws {
        try RemoteStatusText(try await options.client.remote()).show(format, on: options.output)
    }
}

struct RemoteCertificateCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "certificate",
        abstract: "Write the certificate that clients without a pin can trust.",
        discussion: """
            It belongs to an authority with the broker's key, for the names of this machine only, and stays valid when \
            addresses change. Write it again after a new host name or api.remote_names.

              patchbay remote certificate --out ca.pem
              NODE_EXTRA_CA_CERTS=ca.pem node client.js
              curl --cacert ca.pem https://lab.local:7283/health
            """
    )

    @Option(help: ArgumentHelp("Write to this file instead of the output.", valueName: "file"))
    var out: String?
    @OptionGroup var options: GlobalOptions

    func run() async throws {
        guard let certificates = try await options.client.remote().certificates else {
            throw CLIError.temporary("the remote listener is off", try: "patchbay remote on")
        }
        guard let out else { return try options.output.line(String(certificates.authority.dropLast())) }
        do { try AtomicFile.replace(out, with: Data(certificates.authority.utf8), mode: 0o666) } catch {
            throw CLIError.temporary(
                "\(out) could not be written: \(error)",
                try: "patchbay remote certificate > \(out)"
            )
        }
    }
}

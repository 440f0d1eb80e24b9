import ArgumentParser
import Client
import Glibc
import Model
import SystemIO

struct TeamJoinCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "join",
        abstract: "Join the team of another host with a string of `patchbay team invite`.",
        discussion: """
            Reads the string from a file, standard input or a hidden prompt, never from an argument. This host creates \
            its own key, which never leaves it. The invite is sent only to the host with the key pin of the string.

            Joining again with the same name renews the certificate of this host.

              patchbay team join -
              patchbay team join invite.txt --host lab2
            """
    )

    @Argument(help: ArgumentHelp("Read the string from this file; - is standard input.", valueName: "file"))
    var source = "-"
    @Argument(help: .hidden)
    var rest: [String] = []
    @Option(help: ArgumentHelp("Name this host so. Default: team.host, else the machine's name.", valueName: "name"))
    var host: HostName?
    @OptionGroup var format: JSONOption
    @OptionGroup var options: GlobalOptions

    func run() async throws {
        let status = try await options.client.team.join(TeamJoinSpec(pairing: try await pairing(), host: host))
        try TeamStatusText(status).show(format, on: options.output)
    }

    /// Reads the pairing string.
    ///
    /// - Throws: `CLIError`.
    private func pairing() async throws(CLIError) -> String {
        let command = "patchbay team join -"
        let isSecret = source.hasPrefix("PATCHBAY") || !rest.isEmpty
        try SecretInput.refuse(arguments: isSecret ? [source] + rest : [], what: "a pairing string", command: command)
        let isComplete: (String) -> Bool = { (try? TeamPairingString($0)) != nil }
        let text =
            source == "-"
            ? try await SecretInput.line("Pairing string (not shown): ", command: command, isComplete: isComplete)
            : try SecretInput.text(inFile: source, command: command, isComplete: isComplete)
        guard isComplete(text) else {
            throw CLIError.usage(
                text.hasPrefix(PairingString.prefix)
                    ? "the string is of patchbay pair, which gives access to one broker"
                    : "the string is not complete, or not a string of patchbay team invite",
                try: "copy the whole line of patchbay team invite, and run \(command)"
            )
        }
        return text
    }
}

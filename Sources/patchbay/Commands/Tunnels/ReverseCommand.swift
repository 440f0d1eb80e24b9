import ArgumentParser
import Client
import Model

struct ReverseCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "reverse",
        abstract: "Make a port of an Android phone lead to a port of this machine.",
        discussion: """
            The broker opens the port again after each replug and restart, until `--remove`, and within 30 s if another \
            program closes it. The port is closed while the broker is stopped. Every app of the phone can use the port. \
            The adb server connects to its own machine only, which is normally the broker's. iPhones have no such \
            direction.

              patchbay reverse tcp:8081 tcp:8081        phone's port, this machine's
              patchbay reverse 8080 3000 -d Pixel       one of several phones
              patchbay reverse --list                   phone, both ports, state
              patchbay reverse --remove tcp:8081        open connections stay
            """
    )

    @Argument(help: ArgumentHelp("The port of the phone: tcp:PORT or PORT.", valueName: "phone"))
    var phone: String?
    @Argument(help: ArgumentHelp("The port on this machine's loopback: tcp:PORT or PORT.", valueName: "local"))
    var local: String?
    @Option(
        name: [.short, .long],
        help: ArgumentHelp("The phone; optional if one Android phone is attached.", valueName: "phone"),
        completion: .objects(.devices)
    )
    var device: String?
    @Flag(help: "List these ports.")
    var list = false
    @Option(help: ArgumentHelp("Close this port of the phone.", valueName: "phone"))
    var remove: String?
    @OptionGroup var format: JSONOption
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        guard list || remove != nil else {
            if phone == nil || local == nil {
                throw ValidationError("Specify two ports, as in `patchbay reverse tcp:8081 tcp:8081`.")
            }
            return
        }
        if list, remove != nil { throw ValidationError("--list and --remove exclude each other.") }
        if phone != nil { throw ValidationError("--list and --remove open no port; leave the ports out.") }
    }

    func run() async throws {
        let client = try options.client
        if list { return try await showList(client) }
        if let remove { return try await close(try Self.port(remove), client) }
        let (port, localPort) = (try Self.port(phone ?? ""), try Self.port(local ?? ""))
        let command = "patchbay reverse tcp:\(port) tcp:\(localPort) --device UDID"
        let udid = try await DeviceSelector(text: device, command: command).chooseForReverse(client)
        let tunnel = try await client.tunnels.openReverse(port, of: udid, to: localPort)
        if format.json { try options.output.document(tunnel) } else { try options.output.line(Self.line(of: tunnel)) }
        if case .failed(let reason) = tunnel.state {
            throw CLIError.failed(
                "port \(port) of \(udid) is not open: \(reason)",
                try: "use another port of the phone"
            )
        }
    }

    private func showList(_ client: PatchbayClient) async throws {
        let tunnels = try await client.tunnels.listReverse()
        if format.json { return try options.output.jsonLine(ListResponse(tunnels)) }
        for tunnel in tunnels { try options.output.line(Self.line(of: tunnel)) }
    }

    /// Closes a port of the named phone, or of the only one with a tunnel there.
    private func close(_ port: UInt16, _ client: PatchbayClient) async throws {
        let found = try await client.tunnels.listReverse().filter { $0.phonePort == port }.map(\.udid)
        let udid: UDID
        if device == nil, let only = found.first, found.count == 1 {
            udid = only
        } else if found.isEmpty {
            throw CLIError.notFound("no port \(port) of a phone leads to this machine", try: "patchbay reverse --list")
        } else {
            let command = "patchbay reverse --remove tcp:\(port) --device UDID"
            udid = try await DeviceSelector(text: device, command: command).chooseForReverse(client)
        }
        try await client.tunnels.removeReverse(port, of: udid)
        try options.output.line("Removed tcp:\(port) of \(udid).")
    }

    /// Returns the line of a tunnel: `UDID tcp:8081 tcp:8081 active`.
    static func line(of tunnel: ReverseTunnel) -> String {
        let reason = tunnel.state.reason.map { ": \($0)" } ?? ""
        return "\(tunnel.udid) tcp:\(tunnel.phonePort) tcp:\(tunnel.localPort) \(tunnel.state.name)\(reason)"
    }

    /// Parses `tcp:8081` or `8081`.
    static func port(_ text: String) throws(CLIError) -> UInt16 {
        let digits = text.hasPrefix("tcp:") ? text.dropFirst(4) : text[...]
        guard let port = UInt16(digits), port > 0, digits.allSatisfy(\.isNumber) else {
            throw .usage(
                "\"\(SanitizedText(text))\" is not a port, 1 to 65535",
                try: "patchbay reverse tcp:8081 tcp:8081"
            )
        }
        return port
    }
}

extension DeviceSelector {
    /// Selects a phone. Without a text, iPhones do not count.
    fileprivate func chooseForReverse(_ client: PatchbayClient) async throws -> UDID {
        guard text == nil else { return try await choose(client) }
        let devices = try await client.devices()
        guard devices.isEmpty || devices.contains(where: { $0.platform == .android }) else {
            throw CLIError.notFound(
                "no Android phone is attached, and no port of an iPhone can lead to this machine",
                try: "patchbay devices"
            )
        }
        return try await choose(client, platform: .android)
    }
}

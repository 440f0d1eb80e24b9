import ArgumentParser
import Client
import Model

struct ForwardCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "forward",
        abstract: "Forward a local address to a port of a phone or to an endpoint.",
        discussion: """
            The tunnel stays open until the command ends (Ctrl-C), also through disconnects and restarts. With \
            --detach the broker keeps the tunnel until `patchbay tunnels rm`. With a broker on another machine the \
            local address is on this machine, and the tunnel ends with the command.

              patchbay forward 9876                         same local port
              patchbay forward 8080:9876 0:22 -d 00008101   two ports, one phone
              patchbay forward 0:9000-9009                  ten ports, free local ports
              patchbay forward -e shop-test-iphone          any free port
              patchbay forward 9876 --detach                until `tunnels rm`
              patchbay forward tcp:7777 tcp:9876            the words of adb
              patchbay forward --list                       each line: phone, LOCAL, REMOTE
              patchbay forward --remove tcp:7777            the tunnel on this address

            LOCAL is PORT, tcp:PORT, HOST:PORT, tcp:[V6]:PORT or unix:/path; port 0 selects a free port. The default \
            HOST is 127.0.0.1 and ::1. Only clients of your own user can connect, and no web pages. If one of several \
            tunnels cannot be opened, none is opened.
            """
    )

    @Argument(
        help: ArgumentHelp("Forward [LOCAL:]REMOTE to a phone, or LOCAL to an endpoint; repeatable.", valueName: "pair")
    )
    var pairs: [String] = []
    @Option(
        name: [.short, .long],
        help: ArgumentHelp("Forward to this phone; optional if one phone is attached.", valueName: "phone"),
        completion: .objects(.devices)
    )
    var device: String?
    @Option(
        name: [.short, .long],
        help: ArgumentHelp("Forward to this endpoint; each connection uses the best route.", valueName: "id"),
        completion: .objects(.endpoints)
    )
    var endpoint: String?
    @Option(
        name: [.short, .long],
        help: ArgumentHelp("Listen on this address if LOCAL has no address.", valueName: "address")
    )
    var sourceAddress: String?
    @Flag(help: "Fail instead of replacing a tunnel on the same local address.")
    var noRebind = false
    @Flag(help: "Accept clients of all users of this machine.")
    var allowAnyUser = false
    @Flag(help: "Accept HTTP requests that a web page may have sent.")
    var allowBrowsers = false
    @Flag(help: "Open the tunnels and exit; the tunnels stay open.")
    var detach = false
    @Flag(help: "List the tunnels to phones, as adb does.")
    var list = false
    @Option(help: ArgumentHelp("Remove the tunnel that listens on this address.", valueName: "local"))
    var remove: String?
    @OptionGroup var format: JSONOption
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        if list || remove != nil {
            if list, remove != nil { throw ValidationError("--list and --remove exclude each other.") }
            guard pairs.isEmpty, endpoint == nil else {
                throw ValidationError("--list and --remove open no tunnel; leave the other arguments out.")
            }
            return
        }
        if device != nil, endpoint != nil {
            throw ValidationError("--device and --endpoint exclude each other.")
        }
        if pairs.isEmpty, endpoint == nil {
            throw ValidationError("Specify the port on the phone, as in `patchbay forward 9876`, or --endpoint.")
        }
    }

    func run() async throws {
        let client = try options.client
        if list { return try await showList(client) }
        if let remove { return try await removeTunnel(on: remove, client) }
        if detach, client.address.isOnAnotherMachine {
            throw CLIError.usage(
                "--detach keeps a tunnel in the broker, and a broker on another machine would listen there",
                try: "leave --detach out, and run the command in the background"
            )
        }
        let specs = try await specs(client)
        guard detach else { return try await runEphemeral(specs, client) }
        let opened = try await client.tunnels.open(specs)
        if format.json {
            try options.output.jsonLine(ListResponse(opened))
        } else {
            try await Self.show(opened, client, on: options.output)
        }
        if let failed = opened.first(where: { $0.state.name == "failed" }) {
            throw CLIError.failed(
                "cannot listen on \(failed.spec.local): \(failed.state.reason ?? "")",
                try: "use another local port, or tcp:0 for a free port"
            )
        }
    }

    /// Parses all arguments and resolves the target before the first tunnel is opened.
    private func specs(_ client: PatchbayClient) async throws -> [TunnelSpec] {
        if let endpoint {
            let words: [String?] = pairs.isEmpty ? [nil] : pairs
            let arguments = try words.map { try PortMapping(toEndpoint: $0, source: sourceAddress, endpoint: endpoint) }
            let selector = EndpointSelector(text: endpoint, command: "patchbay forward --endpoint")
            let id = try await selector.choose(client).id
            return arguments.map { spec($0.local, .endpoint(id)) }
        }
        let arguments = try PortMapping.joinADBWords(pairs).flatMap { try PortRange.expand($0) }
            .map { try PortMapping(toDevice: $0, source: sourceAddress) }
        let command = "patchbay forward \(pairs.joined(separator: " ")) --device UDID"
        let udid: UDID
        do { udid = try await DeviceSelector(text: device, command: command).choose(client) } catch {
            throw await Self.endpointError(device, instead: error, client)
        }
        return arguments.compactMap { argument in
            argument.remote.map { spec(argument.local, .device(USBRoute(udid: udid, socket: $0))) }
        }
    }

    /// Returns the error for the value of `--device`. If it is the name of an endpoint, the hint has the right option.
    private static func endpointError(
        _ device: String?,
        instead error: any Error,
        _ client: PatchbayClient
    ) async -> any Error {
        guard (error as? CLIError)?.status == .notFound, let device,
            let endpoint = try? await EndpointSelector(text: device, command: "").choose(client)
        else { return error }
        return CLIError.notFound(
            "\"\(SanitizedText(device))\" is no phone, but the endpoint \(endpoint.id)",
            try: "patchbay forward --endpoint \(endpoint.id)"
        )
    }

    private static func show(_ tunnels: [Tunnel], _ client: PatchbayClient, on output: Console) async throws {
        for tunnel in tunnels {
            try output.line(TunnelTableView.line(tunnel))
            if let line = try await VMServiceText.line(for: tunnel, client) { try output.line(line) }
        }
    }

    private func spec(_ local: ListenAddress, _ target: TunnelTarget) -> TunnelSpec {
        TunnelSpec(
            local: local,
            target: target,
            noRebind: noRebind,
            persistent: detach,
            allowAnyUser: allowAnyUser,
            allowBrowsers: allowBrowsers
        )
    }

    private func runEphemeral(_ specs: [TunnelSpec], _ client: PatchbayClient) async throws {
        let output = options.output
        let errors = Console.errors()
        try await EphemeralTunnels(client: client, errors: errors).run(
            specs,
            opened: { tunnels in
                if format.json { return try output.jsonLine(ListResponse(tunnels)) }
                try await Self.show(tunnels, client, on: output)
            },
            failed: { failure in
                if format.json { return try output.jsonLine(failure) }
                try? errors.line("\(failure.tunnel): \(options.hint.completed(failure.detail))")
            }
        )
    }
}

import ArgumentParser
import Client
import Model

struct ForwardCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "forward",
        abstract: "Open a local address that leads to a phone's port or to an endpoint.",
        discussion: """
            The tunnel belongs to the broker: the command returns, and the tunnel stands through unplugging and \
            restarts until `patchbay tunnels rm`. With --hold it stands while the command runs.

              patchbay forward 9876                         the same port here
              patchbay forward 8080:9876 0:22 -d 00008101   two ports, one phone
              patchbay forward 0:9000-9009                  ten ports, each on a free one
              patchbay forward -e shop-test-iphone          any free port
              patchbay forward unix:/tmp/shop:9876 --hold   until Ctrl-C

            LOCAL is PORT, tcp:PORT, HOST:PORT, tcp:[V6]:PORT or unix:/path; port 0 means any free one. Without HOST \
            it is 127.0.0.1 and ::1, for clients of your own user that are no web pages. Several tunnels \
            are opened all or none; one line is printed for each, and they stand also where nobody reads that.
            """
    )

    @Argument(
        help: ArgumentHelp("[LOCAL:]REMOTE to a phone, LOCAL to an endpoint; as many as you like.", valueName: "pair")
    )
    var pairs: [String] = []
    @Option(
        name: [.short, .long],
        help: ArgumentHelp("The phone; may be left out when one is attached.", valueName: "udid")
    )
    var device: String?
    @Option(
        name: [.short, .long],
        help: ArgumentHelp("The endpoint, by the best route at each connection.", valueName: "id")
    )
    var endpoint: String?
    @Option(
        name: [.short, .long],
        help: ArgumentHelp("Listen on this address where LOCAL names none.", valueName: "address")
    )
    var sourceAddress: String?
    @Flag(help: "Fail instead of replacing a tunnel on the same local address.")
    var noRebind = false
    @Flag(help: "Let clients of every user of this machine in, not only yours.")
    var allowAnyUser = false
    @Flag(help: "Let HTTP requests in that a web page may have sent.")
    var allowBrowsers = false
    @Flag(help: "Stay, print failed connections, and remove the tunnels at the end.")
    var hold = false
    @OptionGroup var format: JSONOption
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        if device != nil, endpoint != nil {
            throw ValidationError("A tunnel leads to a phone or to an endpoint; give --device or --endpoint, not both.")
        }
        if pairs.isEmpty, endpoint == nil {
            throw ValidationError("Give the port on the phone, as in `patchbay forward 9876`, or --endpoint.")
        }
    }

    func run() async throws {
        let client = try options.client
        let specs = try await specs(client)
        if hold { return try await keep(specs, client) }
        let opened = try await client.open(specs).tunnels
        if format.json {
            try options.output.record(TunnelList(tunnels: opened))
        } else {
            for tunnel in opened { try options.output.line(TunnelTableView.line(tunnel)) }
        }
        if let failed = opened.first(where: { $0.state.name == "failed" }) {
            throw CLIError(
                status: .error,
                message: "\(failed.spec.local) cannot be listened on: \(failed.state.reason ?? "")",
                remedy: "another local port, or tcp:0 for any free one"
            )
        }
    }

    /// Everything is read and found before the first tunnel is opened.
    private func specs(_ client: PatchbayClient) async throws -> [TunnelSpec] {
        if let endpoint {
            let words: [String?] = pairs.isEmpty ? [nil] : pairs
            let arguments = try words.map { try PortMapping(toEndpoint: $0, source: sourceAddress) }
            let list = try await client.endpoints()
            let selector = EndpointSelector(text: endpoint, command: "patchbay forward --endpoint")
            let id = try selector.choose(among: list.endpoints).id
            return arguments.map { spec($0.local, .endpoint(id)) }
        }
        let arguments = try pairs.flatMap { try PortRange.expand($0) }
            .map { try PortMapping(toDevice: $0, source: sourceAddress) }
        let command = "patchbay forward \(pairs.joined(separator: " ")) --device UDID"
        let udid = try await DeviceSelector(text: device, command: command).choose(client)
        return arguments.compactMap { argument in
            argument.remote.map { spec(argument.local, .device(udid: udid, port: $0)) }
        }
    }

    private func spec(_ local: ListenAddress, _ target: TunnelTarget) -> TunnelSpec {
        TunnelSpec(
            local: local,
            target: target,
            noRebind: noRebind,
            isKept: !hold,
            allowsAnyUser: allowAnyUser,
            allowsBrowsers: allowBrowsers
        )
    }

    private func keep(_ specs: [TunnelSpec], _ client: PatchbayClient) async throws {
        let output = options.output
        let errors = Console.errors()
        try await EphemeralTunnels(client: client, errors: errors).hold(
            specs,
            opened: { tunnels in
                if format.json { return try output.record(TunnelList(tunnels: tunnels)) }
                for tunnel in tunnels { try output.line(TunnelTableView.line(tunnel)) }
            },
            failed: { failure in
                if format.json { return try output.record(failure) }
                try? errors.line("\(failure.tunnel): \(failure.detail)")
            }
        )
    }
}

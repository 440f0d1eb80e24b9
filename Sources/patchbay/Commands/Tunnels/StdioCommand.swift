import ArgumentParser
import Client
import Model

struct StdioCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "stdio",
        abstract: "Connect standard input and output to a port of a phone, or to an endpoint.",
        discussion: """
            What inetcat does, with the reply read to its end: when the input ends, the output goes on until the other \
            side closes. Serves as a ProxyCommand of ssh. Under a grant, HTTP requests that a web page may have sent are \
            refused, as by every tunnel of a grant.

              patchbay stdio 9876 < request.http
              ssh -o ProxyCommand='patchbay stdio 00008101:22' root@phone
            """
    )

    @Argument(help: ArgumentHelp("UDID:PORT, PORT of the only phone, or an endpoint.", valueName: "target"))
    var target: String
    @OptionGroup var options: GlobalOptions

    func run() async throws {
        let client = try options.client
        let spec = TunnelSpec(
            local: .tcp(host: "127.0.0.1", port: 0),
            target: try await destination(client),
            isKept: false,
            // What is piped in is meant as it is, whatever Host it names. A grant has no tunnel that a web page can use.
            allowsBrowsers: try !options.usesGrant
        )
        let (addresses, opened) = AsyncStream.makeStream(of: ListenAddress.self)
        try await withThrowingTaskGroup(of: Ending.self) { group in
            group.addTask {
                var failure = Ending.brokerGone
                try await Self.hold(spec, client) { event in
                    switch event {
                    case .opened(let tunnels): if let bound = tunnels.first?.bound.first { opened.yield(bound) }
                    case .failure(let said): failure = .failed(said)
                    }
                    return if case .failed = failure { false } else { true }
                }
                opened.finish()
                return failure
            }
            group.addTask {
                for await address in addresses {
                    return .relayed(await StdioRelay().run(over: try StdioRelay.connect(to: address)))
                }
                return .brokerGone
            }
            try await conclude(&group)
        }
    }

    private enum Ending: Sendable {
        case relayed(StdioRelay.Ending)
        case failed(TunnelConnectionFailure)
        case brokerGone
    }

    private struct Enough: Error {}

    /// Holds the tunnel until the handler has seen enough or the broker ends the stream.
    private static func hold(
        _ spec: TunnelSpec,
        _ client: PatchbayClient,
        _ handle: (EphemeralTunnelEvent) throws -> Bool
    ) async throws {
        do {
            try await client.holdTunnels([spec]) { event in
                if try !handle(event) { throw Enough() }
            }
        } catch is Enough {}
    }

    /// A stream that broke has its reason on the other connection, which may be a moment later; a stream that ended has none.
    private func conclude(_ group: inout ThrowingTaskGroup<Ending, any Error>) async throws {
        var isReset = false
        while let ending = try await group.next() {
            switch ending {
            case .relayed(.finished):
                group.cancelAll()
                return
            case .relayed(.outputClosed):
                group.cancelAll()
                throw BrokenPipe()
            case .relayed(.reset):
                isReset = true
                group.addTask {
                    try await ContinuousClock().sleep(for: .seconds(1))
                    return .brokerGone
                }
            case .failed(let failure):
                group.cancelAll()
                throw CLIError(status: .temporary, message: failure.detail, remedy: "patchbay devices")
            case .brokerGone:
                group.cancelAll()
                let message = isReset ? "\(SanitizedText(target)) broke the connection off" : "the broker went away"
                throw CLIError(status: .temporary, message: message, remedy: "patchbay status")
            }
        }
    }

    private func destination(_ client: PatchbayClient) async throws -> TunnelTarget {
        let parts = target.split(separator: ":", omittingEmptySubsequences: false)
        if parts.count == 2 || target.allSatisfy(\.isNumber) {
            guard let last = parts.last, let port = UInt16(last), port > 0 else {
                throw CLIError.usage(
                    "\"\(SanitizedText(target))\" does not end with a port, 1 to 65535",
                    try: "patchbay stdio UDID:22"
                )
            }
            let selector = DeviceSelector(
                text: parts.count == 2 ? String(parts[0]) : nil,
                command: "patchbay stdio UDID:\(port)"
            )
            // A whole UDID needs no list, which a grant may not be allowed to read.
            if parts.count == 2, let udid = UDID(String(parts[0])) { return .device(udid: udid, port: port) }
            return .device(udid: try await selector.choose(client), port: port)
        }
        let endpoints: [Endpoint]
        do {
            endpoints = try await client.endpoints().endpoints
        } catch ClientError.refused(let problem) where problem.code == .forbidden {
            // Without the list a whole id is taken as it is; the broker says whether the grant reaches it.
            guard let id = EndpointID(target) else { throw ClientError.refused(problem) }
            return .endpoint(id)
        }
        return .endpoint(try EndpointSelector(text: target, command: "patchbay stdio").choose(among: endpoints).id)
    }
}

import ArgumentParser
import Client
import Model
import SystemIO

struct StdioCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "stdio",
        abstract: "Connect standard input and output to a port of a phone or to an endpoint.",
        discussion: """
            Works like inetcat, for example as a ProxyCommand of ssh. After the end of the input, the command reads the \
            output until the other side closes. With a grant, HTTP requests that a web page may have sent are rejected.

              patchbay stdio 9876 < request.http
              ssh -o ProxyCommand='patchbay stdio 00008101:22' root@phone
            """,
        aliases: ["connect"]
    )

    @Argument(
        help: ArgumentHelp("Connect to UDID:PORT, to PORT of the only phone, or to an endpoint.", valueName: "target"),
        completion: .objects(.streamTargets)
    )
    var target: String
    @OptionGroup var options: GlobalOptions

    func run() async throws {
        let client = try options.client
        let target = try await destination(client)
        if client.address.isOnAnotherMachine { return try await runStream(to: target, client) }
        let spec = TunnelSpec(
            local: .tcp(host: "127.0.0.1", port: 0),
            target: target,
            persistent: false,
            // Piped HTTP requests may have any Host. A grant cannot open a tunnel that accepts browsers.
            allowBrowsers: try !options.usesGrant
        )
        let (addresses, opened) = AsyncStream.makeStream(of: ListenAddress.self)
        try await withThrowingTaskGroup(of: Ending.self) { group in
            group.addTask {
                var failure = Ending.brokerDisconnected
                try await Self.hold(spec, client) { event in
                    switch event {
                    case .opened(let tunnels):
                        if let bound = tunnels.first?.listenAddresses.first { opened.yield(bound) }
                    case .failure(let reported): failure = .failed(reported)
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
                return .brokerDisconnected
            }
            try await conclude(&group, hint: Self.hint(for: spec.target))
        }
    }

    /// Uses a stream, because a tunnel would listen on the broker's machine.
    private func runStream(to target: TunnelTarget, _ client: PatchbayClient) async throws {
        let connection = try await client.streams.open(to: target)
        switch await StdioRelay().run(over: connection.release().number) {
        case .finished: return
        case .outputClosed: throw BrokenPipe()
        case .reset:
            throw CLIError.temporary("\(SanitizedText(self.target)) reset the connection", try: Self.hint(for: target))
        }
    }

    /// The command that shows the state of a target.
    private static func hint(for target: TunnelTarget) -> String {
        switch target {
        case .endpoint(let id): "patchbay show \(id)"
        case .device: "patchbay devices"
        }
    }

    private enum Ending: Sendable {
        case relayed(StdioRelay.Ending)
        case failed(TunnelConnectionFailure)
        case brokerDisconnected
    }

    private struct StopFollowing: Error {}

    /// Keeps the tunnel open until the handler returns false or the broker ends the stream.
    private static func hold(
        _ spec: TunnelSpec,
        _ client: PatchbayClient,
        _ handle: (EphemeralTunnelEvent) throws -> Bool
    ) async throws {
        do {
            try await client.tunnels.openEphemeral([spec]) { event in
                if try !handle(event) { throw StopFollowing() }
            }
        } catch is StopFollowing {}
    }

    /// Waits for the end of the relay and throws the reason of a failure.
    ///
    /// After a reset, waits up to 1 s for the reason, which arrives on the event stream. A normal end has no reason.
    private func conclude(
        _ group: inout ThrowingTaskGroup<Ending, any Error>,
        hint: String
    ) async throws {
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
                    // The broker closes the socket before it sends the reason. Without a reason, it has ended.
                    try await ContinuousClock().sleep(for: .seconds(1))
                    return .brokerDisconnected
                }
            case .failed(let failure):
                group.cancelAll()
                throw CLIError.temporary(failure.detail, try: hint)
            case .brokerDisconnected:
                group.cancelAll()
                let message =
                    isReset ? "\(SanitizedText(target)) reset the connection" : "the broker closed the connection"
                throw CLIError.temporary(message, try: "patchbay status")
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
            // A complete UDID is not looked up, because a grant may lack the permission to read the list.
            if parts.count == 2, let udid = UDID(String(parts[0])) { return .device(udid: udid, port: port) }
            return .device(udid: try await selector.choose(client), port: port)
        }
        do {
            return .endpoint(try await EndpointSelector(text: target, command: "patchbay stdio").choose(client).id)
        } catch ClientError.refused(let problem) where problem.code == .forbidden {
            // Without permission for the list, only a complete ID works; the broker checks the grant.
            guard let id = EndpointID(target) else { throw ClientError.refused(problem) }
            return .endpoint(id)
        }
    }
}

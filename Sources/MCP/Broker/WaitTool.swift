import JSON
import Model
import Registry
import ServiceLifecycle
import SystemIO

/// `endpoint_wait`.
extension BrokerMCPServer {
    /// An endpoint that answered is probed seldom by itself, too seldom for who waits for it.
    static let probePause = Duration.seconds(1)
    /// How many endpoints one wait probes at most: a part of a name may fit hundreds.
    static let probeLimit = 16

    func wait(_ arguments: ToolArguments, _ caller: AgentCaller) async throws(ToolError) -> ToolResult {
        try check(.registryRead, caller)
        let event = try arguments.word("event", as: EndpointEventMatcher.Event.self) ?? .online
        let seconds = try arguments.number("timeout_s", in: 1...60) ?? 30
        let filter = try arguments.required("endpoint")
        let found: Endpoint?
        do {
            // Who waits is answered as well when the broker stops.
            found =
                try await cancelWhenGracefulShutdown { [self] in
                    try await withDeadline(.seconds(seconds), clock: clock) { [self] in
                        try await look(for: event, filter, caller)
                    }
                } ?? nil
        } catch { found = nil }
        guard let found else {
            let what =
                "nothing that fits \"\(SanitizedText(filter, limit: 60))\" was \(event.rawValue) within \(seconds) s"
            return ToolResult("timeout: \(what)", ["event": "timeout"])
        }
        return await result(event.rawValue, found)
    }

    /// Probes what fits, first of all and then again and again, until a change is the one that is waited for.
    private func look(
        for event: EndpointEventMatcher.Event,
        _ filter: String,
        _ caller: AgentCaller
    ) async throws -> Endpoint? {
        // What is listed may be 15 s old; of another launch nothing is known before the first look.
        await probeFitting(filter, caller)
        let (start, changes) = await registry.changes()
        guard case .snapshot(let endpoints, _) = start else { return nil }
        let watch = EndpointEventMatcher(event, filter: filter, endpoints.filter(caller.sees))
        if let endpoint = watch.found { return endpoint }
        return try await withThrowingTaskGroup(of: Endpoint?.self) { [self] group in
            group.addTask {
                var watch = watch
                for await change in changes where caller.sees(change.endpoint) {
                    if let endpoint = watch.take(change) { return endpoint }
                }
                return nil
            }
            group.addTask { [self] in
                while true {
                    try await clock.sleep(for: Self.probePause)
                    await probeFitting(filter, caller)
                }
            }
            defer { group.cancelAll() }
            return try await group.next() ?? nil
        }
    }

    /// Those on the network that a person has approved; the ports of phones are watched where they are found.
    private func probeFitting(_ filter: String, _ caller: AgentCaller) async {
        let fitting = await seen(by: caller).filter { $0.fits(filter) && $0.isOnApprovedNetwork }
        await withDiscardingTaskGroup { group in
            for endpoint in fitting.prefix(Self.probeLimit) { group.addTask { await self.probe(endpoint) } }
        }
    }

    private func result(_ event: String, _ endpoint: Endpoint) async -> ToolResult {
        guard let row = await rows(await trust.judged([endpoint])).first else {
            return ToolResult(event, ["event": .string(event)])
        }
        return ToolResult(
            "\(event): \(row.endpoint.id) (\(row.status))",
            ["event": .string(event), "endpoint": .object(row.json)]
        )
    }
}

extension Endpoint {
    /// Whether a route over the network may be dialled.
    fileprivate var isOnApprovedNetwork: Bool { routes.contains { $0.isApproved && $0.route.isNetwork } }
}

/// Looks for one event among the changes of the list.
struct EndpointEventMatcher: Sendable {
    enum Event: String, CaseIterable, Sendable {
        case online, offline, restarted, changed
    }

    /// What tells one launch of an app from the next.
    private struct Launch: Hashable {
        let boot: SanitizedText?
        let port: UInt16?
        let isOnline: Bool

        init(_ endpoint: Endpoint) {
            boot = endpoint.boot
            port = endpoint.routes.first?.port
            isOnline = endpoint.isOnline
        }
    }

    private let event: Event
    private let filter: String
    private var launches: [EndpointID: Launch] = [:]
    /// What is so already.
    private(set) var found: Endpoint?

    init(_ event: Event, filter: String, _ endpoints: [Endpoint]) {
        self.event = event
        self.filter = filter
        for endpoint in endpoints where endpoint.fits(filter) {
            launches[endpoint.id] = Launch(endpoint)
            let isSo = event == .online && endpoint.isOnline || event == .offline && endpoint.state == .offline
            if isSo, found == nil { found = endpoint }
        }
    }

    /// The endpoint, if this change is the one that is waited for.
    mutating func take(_ change: EndpointChange) -> Endpoint? {
        let endpoint = change.endpoint
        guard endpoint.fits(filter) else { return nil }
        let (before, now) = (launches[endpoint.id], Launch(endpoint))
        launches[endpoint.id] = change.kind == .removed ? nil : now
        let isIt =
            switch event {
            case .online: change.kind != .removed && endpoint.isOnline
            case .offline: change.kind == .removed || endpoint.state == .offline
            case .restarted: change.kind != .removed && now.isOnline && before != now
            case .changed: true
            }
        return isIt ? endpoint : nil
    }
}

extension Endpoint {
    fileprivate var isOnline: Bool { state == .online }
}

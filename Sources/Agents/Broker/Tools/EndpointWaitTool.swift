import AccessControl
import Apps
import Model
import Registry
import ServiceLifecycle
import SystemIO

/// Waits until an endpoint comes, goes, restarts or changes.
struct EndpointWaitTool: BrokerTool {
    /// The registry probes known endpoints too rarely for a waiting principal.
    static let probeInterval = Duration.seconds(1)
    /// The maximum number of endpoints that one wait probes. A part of a name may match hundreds.
    private static let probeLimit = 16

    private static let endpoint = ToolParameter.endpointFilter
    private static let event = ToolParameter<EndpointEventMatcher.Event>.word("event", "default online")
    private static let timeout = ToolParameter.number("timeoutSeconds", in: 1...60, "default 30")

    let definition = ToolDefinition(
        name: "endpoint_wait",
        description: "Waits until an app comes, goes or restarts.",
        scope: .registryRead,
        required: [Self.endpoint.property],
        optional: [Self.event.property, Self.timeout.property],
        annotations: ["readOnlyHint": true]
    )
    let directory: EndpointDirectory
    let list: any EndpointListing
    let probe: @Sendable (Endpoint) async -> Void
    let clock: any Clock<Duration>

    func call(_ request: ToolRequest, for principal: Principal) async throws(ToolError) -> ToolResult {
        let event = try request[Self.event] ?? .online
        let seconds = try request[Self.timeout] ?? 30
        guard let filter = try request[Self.endpoint].map(\.trimmed), !filter.isEmpty else {
            throw ToolError("endpoint is missing\(await directory.suggestions(for: principal).list)")
        }
        let found: Endpoint?
        do {
            // A waiting principal gets a response when the broker stops.
            found =
                try await cancelWhenGracefulShutdown {
                    try await withTimeout(.seconds(seconds), clock: clock) {
                        try await waitForEvent(event, filter: filter, principal: principal)
                    }
                } ?? nil
        } catch let error as ToolError {
            throw error
        } catch {
            found = nil
        }
        guard let found else {
            let message =
                "no endpoint that matches \"\(SanitizedText(filter, limit: 60))\" was \(event.rawValue) within \(seconds) s"
            let isKnown = await directory.match(filter, for: principal) != .none
            let end = isKnown ? "" : "; no endpoint has that name\(await directory.suggestions(for: principal).list)"
            return ToolResult("timeout: \(message)\(end)", ["event": "timeout"])
        }
        guard let summary = await directory.summary(of: principal.view(of: found)) else {
            return ToolResult(event.rawValue, ["event": .string(event.rawValue)])
        }
        return ToolResult(
            "\(event.rawValue): \(found.id) (\(summary.status))",
            ["event": .string(event.rawValue), "endpoint": .object(summary.json)]
        )
    }

    /// Probes the matching endpoints at once and then at every interval, until the expected event occurs.
    private func waitForEvent(
        _ event: EndpointEventMatcher.Event,
        filter: String,
        principal: Principal
    ) async throws -> Endpoint? {
        // The listed state may be 15 s old, and a new launch is unknown before the first probe.
        await probeMatching(filter, for: principal)
        let (start, changes) = await list.changes(after: nil)
        guard case .snapshot(let endpoints, _) = start else { return nil }
        let matcher = EndpointEventMatcher(event, endpoints: endpoints.filter(principal.canSee))
        var meant: EndpointID?
        switch await directory.match(filter, for: principal) {
        case .one(let endpoint):
            if matcher.isSatisfied(by: endpoint) { return endpoints.first { $0.id == endpoint.id } ?? endpoint }
            meant = endpoint.id
        case .unapproved(let endpoint): if matcher.isSatisfied(by: endpoint) { return endpoint }
        case .several(let matching): throw EndpointDirectory.ambiguous(filter, matching)
        case .none:
            if let near = await directory.suggestions(for: principal).mistyped(filter) {
                throw ToolError(
                    """
                    no endpoint matches "\(SanitizedText(filter, limit: 60))"; did you mean \(near)? For an app that is not \
                    listed yet, wait for a part of its name
                    """
                )
            }
        }
        return try await withThrowingTaskGroup(of: Endpoint?.self) { [meant] group in
            group.addTask {
                var matcher = matcher
                for await change in changes where principal.canSee(change.endpoint) {
                    guard let endpoint = matcher.handle(change) else { continue }
                    if endpoint.id == meant { return endpoint }
                    if try await isMeant(endpoint, by: filter, for: principal) { return endpoint }
                }
                return nil
            }
            group.addTask {
                while true {
                    try await clock.sleep(for: Self.probeInterval)
                    await probeMatching(filter, for: principal)
                }
            }
            defer { group.cancelAll() }
            return try await group.next() ?? nil
        }
    }

    /// Returns whether the text means an endpoint that has changed during the wait.
    ///
    /// - Throws: `ToolError` if the text matches this endpoint and others.
    private func isMeant(_ endpoint: Endpoint, by filter: String, for principal: Principal) async throws -> Bool {
        switch await directory.match(filter, for: principal) {
        case .one(let found), .unapproved(let found): return found.id == endpoint.id
        // The endpoint has been removed.
        case .none: return endpoint.matches(filter)
        case .several(let matching):
            guard matching.contains(where: { $0.id == endpoint.id }) else { return false }
            throw EndpointDirectory.ambiguous(filter, matching)
        }
    }

    /// Probes the matching endpoints with an approved network route. Device ports are probed by their own scanner.
    private func probeMatching(_ filter: String, for principal: Principal) async {
        let matching = await directory.endpoints(visibleTo: principal)
            .filter { $0.matches(filter) && $0.isOnApprovedNetwork }
        await withDiscardingTaskGroup { group in
            for endpoint in matching.prefix(Self.probeLimit) { group.addTask { await probe(endpoint) } }
        }
    }
}

extension Endpoint {
    /// True if a network route of the endpoint may be dialed.
    fileprivate var isOnApprovedNetwork: Bool { routes.contains { $0.isApproved && $0.route.isNetwork } }
}

/// Finds one kind of event among the changes of the endpoint list.
struct EndpointEventMatcher: Sendable {
    /// The argument `event` of `endpoint_wait`.
    enum Event: String, CaseIterable, Sendable {
        case online, offline, restarted, changed
    }

    /// The facts that distinguish two launches of an app.
    private struct Launch: Hashable {
        let boot: SanitizedText?
        let port: UInt16?
        let isOnline: Bool

        init(_ endpoint: Endpoint) {
            boot = endpoint.launchID
            port = endpoint.shownRoutes.first?.port
            isOnline = endpoint.isOnline
        }
    }

    private let event: Event
    private var launches: [EndpointID: Launch]

    init(_ event: Event, endpoints: [Endpoint]) {
        self.event = event
        launches = Dictionary(endpoints.map { ($0.id, Launch($0)) }) { $1 }
    }

    /// Returns whether the endpoint is already in the expected state.
    func isSatisfied(by endpoint: Endpoint) -> Bool {
        event == .online && endpoint.isOnline || event == .offline && endpoint.state == .offline
    }

    /// Handles a change. Returns the endpoint if the change is an event of the expected kind.
    mutating func handle(_ change: EndpointChange) -> Endpoint? {
        let endpoint = change.endpoint
        let (before, now) = (launches[endpoint.id], Launch(endpoint))
        launches[endpoint.id] = change.kind == .removed ? nil : now
        let isMatch =
            switch event {
            case .online: change.kind != .removed && endpoint.isOnline
            case .offline: change.kind == .removed || endpoint.state == .offline
            case .restarted: change.kind != .removed && now.isOnline && before != now
            case .changed: true
            }
        return isMatch ? endpoint : nil
    }
}

extension Endpoint {
    fileprivate var isOnline: Bool { state == .online }
}

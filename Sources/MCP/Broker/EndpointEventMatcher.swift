import Model

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

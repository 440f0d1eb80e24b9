package import Model
import ServiceLifecycle
package import SystemIO

/// Finds out in seconds what Bonjour tells after minutes or never: whether the listed endpoints still answer.
///
/// A probe is a TCP connection that is closed at once: it costs the app nothing and needs no secret.
package struct LivenessProber: Service {
    private let board: any LivenessStore
    private let dialer: any Dialer
    private let clock = PollerClock()

    /// How many endpoints are probed at once: all that one dead host may have listed (`EndpointTable.limitPerHost`), so that
    /// they wait for its silence together and not one after the other.
    static let width = 64
    /// How long one route may take: the kernel needs 3.07 s to find out that nobody answers ARP.
    static let patience = Duration.seconds(3)
    /// How long a route is waited for before the next one is tried beside it, and the most that any has to wait. A probe
    /// takes 4 s at most, however many addresses a dead host has, and one that answers at once is dialled once.
    static let headStart = Duration.milliseconds(250)
    static let longestWait = Duration.seconds(1)

    package init(board: any LivenessStore, dialer: any Dialer) {
        self.board = board
        self.dialer = dialer
    }

    package func run() async throws {
        try? await cancelWhenGracefulShutdown {
            let start = clock.now
            var (schedule, random) = (ProbeSchedule(), SystemRandomNumberGenerator())
            var revision: UInt64?
            while true {
                if let list = await board.list(ifChangedSince: revision) {
                    schedule.update(list.endpoints)
                    revision = list.revision
                }
                let now = start.duration(to: clock.now)
                await probe(schedule.take(at: now, watched: await board.watched(), using: &random))
                try await clock.sleep(for: .milliseconds(500))
            }
        }
    }

    /// Probes one endpoint now and tells the board.
    package func probe(_ endpoint: Endpoint) async {
        guard !Task.isCancelled else { return }
        // An unapproved advert may name any address: it is not dialled, not even to probe it.
        let routes = endpoint.approvedRoutes.map(\.route)
        guard !routes.isEmpty || endpoint.routes.isEmpty else { return }
        let failure =
            routes.isEmpty ? DialError(.noRoute, "no route to \(endpoint.id) is known") : await attempt(routes)
        // A probe that our own shutdown cut short says nothing about the endpoint.
        guard !Task.isCancelled else { return }
        await board.report(failure, of: endpoint.id)
    }

    private func probe(_ endpoints: [Endpoint]) async {
        await withTaskGroup { group in
            var waiting = endpoints[...]
            for endpoint in waiting.prefix(Self.width) { group.addTask { await probe(endpoint) } }
            waiting = waiting.dropFirst(Self.width)
            while await group.next() != nil {
                if let endpoint = waiting.popFirst() { group.addTask { await probe(endpoint) } }
            }
        }
    }

    /// Tries every route, each a little after the one before it, until one answers.
    ///
    /// - Returns: Why the best route does not work, if none does.
    private func attempt(_ routes: [Route]) async -> DialError? {
        if let only = routes.first, routes.count == 1 { return await attempt(only) }
        return await withTaskGroup(of: (Int, DialError?).self) { group in
            for (index, route) in routes.enumerated() {
                group.addTask {
                    // Cancelled when another route has answered; then nobody asks for this one.
                    try? await clock.sleep(for: min(Self.headStart * index, Self.longestWait))
                    return (index, await attempt(route))
                }
            }
            var best: (index: Int, failure: DialError)?
            for await (index, failure) in group {
                guard let failure else {
                    group.cancelAll()
                    return nil
                }
                if best.map({ index < $0.index }) ?? true { best = (index, failure) }
            }
            return best?.failure
        }
    }

    private func attempt(_ route: Route) async -> DialError? {
        do {
            try Task.checkCancellation()
            let isReached = try await withDeadline(Self.patience, clock: clock) { [dialer] in
                let carrier = try await dialer.dial(route)
                _ = consume carrier
                return true
            }
            return isReached == nil ? DialError(.timedOut, "\(route) did not answer within 3 s") : nil
        } catch let failure as DialError {
            return failure
        } catch {
            return DialError(.failed, "\(route) could not be probed: \(error)")
        }
    }
}

/// What the liveness prober needs of the registry: the list, who looks at it, and a place to report to.
package protocol LivenessStore: Sendable {
    /// The list and its revision; nil while `revision` is still the present one.
    func list(ifChangedSince revision: UInt64?) async -> (endpoints: [Endpoint], revision: UInt64)?
    /// The endpoints whose state a client wants to know now.
    func watched() async -> WatchedEndpoints
    /// Nil is success.
    func report(_ failure: DialError?, of id: EndpointID) async
}

/// The endpoints that are probed at the usual pace; the others are probed seldom.
package enum WatchedEndpoints: Hashable, Sendable {
    case all
    case only(Set<EndpointID>)

    func contains(_ id: EndpointID) -> Bool {
        switch self {
        case .all: true
        case .only(let ids): ids.contains(id)
        }
    }
}

/// When each endpoint is probed next.
///
/// One that is online is asked seldom, and more seldom while no client watches it. One that failed is asked again at once, so
/// that three failures fit in 15 s even when each takes the kernel its full 3 s to notice a dead host.
struct ProbeSchedule: Sendable {
    static let whileOnline = Duration.seconds(15)
    static let whileUnwatched = Duration.seconds(60)
    static let whileSuspect = Duration.seconds(2)
    /// Each pause is shortened by a random part of up to this share, so that many endpoints are not probed at one moment.
    static let spread = 0.25

    private struct Entry {
        var endpoint: Endpoint
        /// The time of the last probe; nil before the first.
        var last: Duration?
        /// What is left of each pause, from `1 - spread` to 1.
        var share = 1.0
    }

    private var entries: [EndpointID: Entry] = [:]

    /// Takes in what is listed now.
    mutating func update(_ endpoints: [Endpoint]) {
        var updated: [EndpointID: Entry] = [:]
        for endpoint in endpoints where Self.isProbed(endpoint) {
            var entry = entries[endpoint.id] ?? Entry(endpoint: endpoint)
            entry.endpoint = endpoint
            updated[endpoint.id] = entry
        }
        entries = updated
    }

    /// Takes what is to be probed now.
    ///
    /// - Parameters:
    ///   - now: The time since any fixed moment.
    ///   - watched: What is probed every `whileOnline`.
    ///   - random: Where the shares of the pauses come from.
    /// - Returns: The endpoints that are due, those that have waited longest first; each is marked as probed.
    mutating func take(
        at now: Duration,
        watched: WatchedEndpoints,
        using random: inout some RandomNumberGenerator
    ) -> [Endpoint] {
        let due = entries.values.filter { entry in entry.last.map { now - $0 >= pause(of: entry, watched) } ?? true }
            .sorted { ($0.last ?? .zero, $0.endpoint.id) < ($1.last ?? .zero, $1.endpoint.id) }
            .map(\.endpoint)
        for endpoint in due {
            entries[endpoint.id]?.last = now
            entries[endpoint.id]?.share = Double.random(in: (1 - Self.spread)...1, using: &random)
        }
        return due
    }

    private func pause(of entry: Entry, _ watched: WatchedEndpoints) -> Duration {
        if entry.endpoint.state == .suspect { return Self.whileSuspect }
        return (watched.contains(entry.endpoint.id) ? Self.whileOnline : Self.whileUnwatched) * entry.share
    }

    /// Phones' ports are watched where they are found. An address that no owner approved is not dialled.
    private static func isProbed(_ endpoint: Endpoint) -> Bool {
        endpoint.state != .blocked && endpoint.approvedRoutes.contains { $0.route.isNetwork }
    }
}

/// When each port of a phone is tried next.
struct PortSchedule: Sendable {
    /// While a client is present, and after a miss.
    static let urgent = Duration.seconds(1)
    /// Without a client: a port where nothing was found, and one where something was.
    static let idle = Duration.seconds(3)
    static let idleFound = Duration.seconds(15)

    private var tried: [USBRoute: ContinuousClock.Instant] = [:]

    /// Whether a port is to be tried now; then it is marked as tried. A new one is tried at once.
    mutating func take(_ port: USBRoute, isUrgent: Bool, isFound: Bool, at now: ContinuousClock.Instant) -> Bool {
        let pause = isUrgent ? Self.urgent : isFound ? Self.idleFound : Self.idle
        if let last = tried[port], now - last < pause { return false }
        tried[port] = now
        return true
    }

    /// Forgets the ports of all other phones.
    mutating func keep(_ phones: Set<UDID>) { tried = tried.filter { phones.contains($0.key.udid) } }
}

import Model
import Synchronization

/// A queue of services to look up, ordered so that a flood of names cannot delay other services for long.
///
/// Avahi names the machine of a service only in its response. Fairness therefore uses the interface, the protocol and the
/// type: each combination is a lane, and lanes take turns (round robin).
///
/// Within a lane every eighth turn goes to the oldest service and the others to the newest. A flood that arrived before
/// a service then does not delay it. A flood that arrives later cannot delay it forever.
///
/// First lookups go before repeated ones, which get every eighth turn.
struct LookupQueue: Sendable {
    private struct Lane: Hashable {
        let interface: CInt
        let transport: CInt
        let type: String
    }

    /// The services of one lane, removed from either end. Removed entries leave a gap at the front until the array is
    /// compacted.
    private struct LaneQueue {
        private var keys: [ServiceKey] = []
        private var start = 0
        private var turn = 0

        var count: Int { keys.count - start }
        var isEmpty: Bool { start == keys.count }

        mutating func append(_ key: ServiceKey) { keys.append(key) }

        mutating func pop() -> ServiceKey? {
            turn = (turn + 1) % LookupQueue.turns
            guard turn != 0 else { return popOldest() }
            return isEmpty ? nil : keys.removeLast()
        }

        mutating func popOldest() -> ServiceKey? {
            guard !isEmpty else { return nil }
            defer {
                start += 1
                if start > 64, start * 2 > keys.count {
                    keys.removeFirst(start)
                    start = 0
                }
            }
            return keys[start]
        }

        mutating func retain(where isWaiting: (ServiceKey) -> Bool) {
            keys = keys[start...].filter(isWaiting)
            start = 0
        }
    }

    /// Lanes that take turns.
    private struct LaneGroup {
        private var queues: [Lane: LaneQueue] = [:]
        private var turns: [Lane] = []
        private var next = 0

        mutating func append(_ key: ServiceKey) {
            let lane = Lane(interface: key.interface, transport: key.transport, type: key.type)
            if queues[lane] == nil { turns.append(lane) }
            queues[lane, default: LaneQueue()].append(key)
        }

        mutating func pop() -> ServiceKey? {
            for _ in turns.indices {
                next = (next + 1) % turns.count
                if let key = queues[turns[next]]?.pop() { return key }
            }
            return nil
        }

        var count: Int { queues.values.reduce(0) { $0 + $1.count } }

        mutating func popFromLongestLane() -> ServiceKey? {
            guard let lane = queues.max(by: { $0.value.count < $1.value.count })?.key else { return nil }
            return queues[lane]?.popOldest()
        }

        mutating func retain(where isWaiting: (ServiceKey) -> Bool) {
            for lane in turns {
                queues[lane]?.retain(where: isWaiting)
                if queues[lane]?.isEmpty == true { queues[lane] = nil }
            }
            turns.removeAll { queues[$0] == nil }
            next = 0
        }
    }

    /// Every eighth turn goes to the oldest entry, or to a repeated lookup.
    private static let turns = 8

    private var first = LaneGroup()
    private var repeated = LaneGroup()
    private var turn = 0
    /// The number of entries, including services that no longer wait.
    private(set) var count = 0

    /// Adds a service. `isFirst` is true for its first lookup.
    mutating func append(_ key: ServiceKey, isFirst: Bool) {
        count += 1
        if isFirst { first.append(key) } else { repeated.append(key) }
    }

    /// Removes and returns the next service. The caller checks whether the service still waits.
    mutating func pop() -> ServiceKey? {
        turn = (turn + 1) % Self.turns
        let key = turn == 0 ? repeated.pop() ?? first.pop() : first.pop() ?? repeated.pop()
        if key != nil { count -= 1 }
        return key
    }

    /// Removes and returns the oldest first lookup of the longest lane. Used when a limit is reached.
    mutating func popFromLongestLane() -> ServiceKey? {
        let key = first.popFromLongestLane()
        if key != nil { count -= 1 }
        return key
    }

    /// Removes the entries of services that no longer wait.
    mutating func retain(where isWaiting: (ServiceKey) -> Bool) {
        first.retain(where: isWaiting)
        repeated.retain(where: isWaiting)
        count = first.count + repeated.count
    }
}

/// Routes without a response to their probe. The Avahi thread reads them and looks up their services again.
///
/// Thread safety: one mutex protects everything.
final class UnresponsiveRoutes: Sendable {
    private let routes = Mutex<Set<Route>>([])

    func add(_ routes: some Sequence<Route>) { self.routes.withLock { $0.formUnion(routes) } }

    /// Removes and returns all routes.
    func drain() -> Set<Route> {
        routes.withLock { routes in
            defer { routes = [] }
            return routes
        }
    }
}

/// A time for each of several services, with the earliest time available without a search.
struct ServiceSchedule: Sendable {
    typealias Instant = ContinuousClock.Instant

    private var times: [ServiceKey: Instant] = [:]
    /// A lower bound of the earliest time.
    private(set) var earliest: Instant?

    var count: Int { times.count }

    subscript(_ key: ServiceKey) -> Instant? {
        get { times[key] }
        set {
            times[key] = newValue
            if let newValue { earliest = min(earliest ?? newValue, newValue) }
            if times.isEmpty { earliest = nil }
        }
    }

    /// Removes and returns the services that are due, in order of their times.
    mutating func due(at now: Instant) -> [ServiceKey] {
        guard let earliest, earliest <= now else { return [] }
        let due = times.filter { $0.value <= now }.sorted { $0.value < $1.value }.map(\.key)
        for key in due { times[key] = nil }
        self.earliest = times.values.min()
        return due
    }

    /// Any service that satisfies the predicate.
    func key(where fits: (ServiceKey) -> Bool) -> ServiceKey? { times.keys.first(where: fits) }

    /// The service with the earliest time.
    var first: ServiceKey? { times.min { $0.value < $1.value }?.key }
}

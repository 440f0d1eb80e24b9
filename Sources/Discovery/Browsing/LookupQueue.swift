import Model
import Synchronization

/// Services that wait for a lookup, in an order in which a flood of names delays no other service for long.
///
/// Avahi names the host of a service only in the answer, so fairness goes by what is known before: the interface, the
/// protocol and the type make a lane, and lanes take turns. In a lane every eighth turn is the oldest's and the others are
/// the newest's: a flood that came before a service does not delay it, and one that comes after it delays it not for ever.
/// First lookups go before repeated ones, of which every eighth turn is.
struct LookupQueue: Sendable {
    private struct Lane: Hashable {
        let interface: CInt
        let transport: CInt
        let type: String
    }

    /// One lane's services, taken from either end. What was taken leaves a gap at the front until the array is compacted.
    private struct Line {
        private var keys: [ServiceKey] = []
        private var start = 0
        private var turn = 0

        var count: Int { keys.count - start }
        var isEmpty: Bool { start == keys.count }

        mutating func append(_ key: ServiceKey) { keys.append(key) }

        mutating func take() -> ServiceKey? {
            turn = (turn + 1) % LookupQueue.turns
            guard turn != 0 else { return takeOldest() }
            return isEmpty ? nil : keys.removeLast()
        }

        mutating func takeOldest() -> ServiceKey? {
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

        mutating func keep(where isWaiting: (ServiceKey) -> Bool) {
            keys = keys[start...].filter(isWaiting)
            start = 0
        }
    }

    /// Lines that take turns.
    private struct Class {
        private var lines: [Lane: Line] = [:]
        private var turns: [Lane] = []
        private var next = 0

        mutating func append(_ key: ServiceKey) {
            let lane = Lane(interface: key.interface, transport: key.transport, type: key.type)
            if lines[lane] == nil { turns.append(lane) }
            lines[lane, default: Line()].append(key)
        }

        mutating func take() -> ServiceKey? {
            for _ in turns.indices {
                next = (next + 1) % turns.count
                if let key = lines[turns[next]]?.take() { return key }
            }
            return nil
        }

        var count: Int { lines.values.reduce(0) { $0 + $1.count } }

        mutating func takeFromLongest() -> ServiceKey? {
            guard let lane = lines.max(by: { $0.value.count < $1.value.count })?.key else { return nil }
            return lines[lane]?.takeOldest()
        }

        mutating func keep(where isWaiting: (ServiceKey) -> Bool) {
            for lane in turns {
                lines[lane]?.keep(where: isWaiting)
                if lines[lane]?.isEmpty == true { lines[lane] = nil }
            }
            turns.removeAll { lines[$0] == nil }
            next = 0
        }
    }

    /// Every so manieth turn is for what waits longest.
    private static let turns = 8

    private var first = Class()
    private var repeated = Class()
    private var turn = 0
    /// Entries, those of services that wait no more included.
    private(set) var count = 0

    mutating func append(_ key: ServiceKey, isFirst: Bool) {
        count += 1
        if isFirst { first.append(key) } else { repeated.append(key) }
    }

    /// The next service. The caller knows whether it still waits.
    mutating func take() -> ServiceKey? {
        turn = (turn + 1) % Self.turns
        let key = turn == 0 ? repeated.take() ?? first.take() : first.take() ?? repeated.take()
        if key != nil { count -= 1 }
        return key
    }

    /// The oldest first lookup of the lane that has the most; for when there is no room for all.
    mutating func takeFromLongest() -> ServiceKey? {
        let key = first.takeFromLongest()
        if key != nil { count -= 1 }
        return key
    }

    /// Drops the entries of services that wait no more.
    mutating func keep(where isWaiting: (ServiceKey) -> Bool) {
        first.keep(where: isWaiting)
        repeated.keep(where: isWaiting)
        count = first.count + repeated.count
    }
}

/// Routes that a probe found silent, on their way to the Avahi thread, which asks Avahi again for their services.
///
/// Thread safety: everything is behind one mutex.
final class SilentRoutes: Sendable {
    private let routes = Mutex<Set<Route>>([])

    func add(_ routes: some Sequence<Route>) { self.routes.withLock { $0.formUnion(routes) } }

    func take() -> Set<Route> {
        routes.withLock { routes in
            defer { routes = [] }
            return routes
        }
    }
}

/// When each of several services has its turn, and the earliest of these times without a look at all of them.
struct Timetable: Sendable {
    typealias Instant = ContinuousClock.Instant

    private var times: [ServiceKey: Instant] = [:]
    /// Not later than the earliest time.
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

    /// Takes out the services whose time has come, the longest waiting first.
    mutating func due(at now: Instant) -> [ServiceKey] {
        guard let earliest, earliest <= now else { return [] }
        let due = times.filter { $0.value <= now }.sorted { $0.value < $1.value }.map(\.key)
        for key in due { times[key] = nil }
        self.earliest = times.values.min()
        return due
    }

    /// Any service that fits.
    func key(where fits: (ServiceKey) -> Bool) -> ServiceKey? { times.keys.first(where: fits) }

    /// The service whose time comes first.
    var first: ServiceKey? { times.min { $0.value < $1.value }?.key }
}

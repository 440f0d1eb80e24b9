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

package import FoundationEssentials
package import Model

/// The calls of the last 24 hours, by hour, phone and grant.
package struct UsageCounter: Sendable {
    package static let hours = 24
    private static let hour = 3_600.0
    /// The maximum number of phones, and of grants, that are counted in an hour. The calls of further ones are in the sum.
    private static let keyLimit = 256

    private struct Hour: Sendable {
        var number: Int
        var total = Usage.Counts()
        var devices: [UDID: Usage.Counts] = [:]
        var grants: [String: Usage.Counts] = [:]
    }

    private let start: Date
    /// The hours with calls, oldest first.
    private var recorded: [Hour] = []

    package init(startingAt start: Date) { self.start = start }

    mutating func record(isFailure: Bool, device: UDID?, grant: String?, at date: Date) {
        let number = Self.number(of: date)
        if (recorded.last?.number ?? .min) < number {
            recorded.append(Hour(number: number))
            recorded.removeAll { $0.number <= number - Self.hours }
        }
        // A clock that goes back counts in the newest hour.
        let index = recorded.count - 1
        recorded[index].total.count(isFailure)
        if let device { Self.count(isFailure, device, in: &recorded[index].devices) }
        if let grant { Self.count(isFailure, grant, in: &recorded[index].grants) }
    }

    private static func count<Key>(_ isFailure: Bool, _ key: Key, in counts: inout [Key: Usage.Counts]) {
        guard counts[key] != nil || counts.count < keyLimit else { return }
        counts[key, default: Usage.Counts()].count(isFailure)
    }

    private static func number(of date: Date) -> Int { Int((date.timeIntervalSince1970 / hour).rounded(.down)) }

    /// Returns the beginning of the counted time.
    package func since(_ now: Date) -> Date {
        max(start, Date(timeIntervalSince1970: Double(Self.number(of: now) - Self.hours + 1) * Self.hour))
    }

    /// Returns the hours until now, those of a grant alone, or all.
    package func hours(ofGrant grant: String?, until now: Date) -> [Usage.Hour] {
        let first = Self.number(of: since(now))
        let numbers = first...max(first, Self.number(of: now))
        return numbers.map { number in
            let hour = recorded.first { $0.number == number }
            let counts = grant.map { hour?.grants[$0] } ?? hour?.total
            return Usage.Hour(
                at: Date(timeIntervalSince1970: Double(number) * Self.hour),
                counts ?? Usage.Counts()
            )
        }
    }

    package func devices(until now: Date) -> [UDID: Usage.Counts] { sum(\.devices, now) }

    package func grants(until now: Date) -> [String: Usage.Counts] { sum(\.grants, now) }

    private func sum<Key>(_ counts: KeyPath<Hour, [Key: Usage.Counts]>, _ now: Date) -> [Key: Usage.Counts] {
        recorded.filter { $0.number > Self.number(of: now) - Self.hours }.reduce(into: [:]) { sum, hour in
            sum.merge(hour[keyPath: counts]) { $0 + $1 }
        }
    }
}

extension Usage.Counts {
    fileprivate mutating func count(_ isFailure: Bool) {
        calls += 1
        if isFailure { failures += 1 }
    }

    fileprivate static func + (one: Self, other: Self) -> Self {
        Self(calls: one.calls + other.calls, failures: one.failures + other.failures)
    }
}

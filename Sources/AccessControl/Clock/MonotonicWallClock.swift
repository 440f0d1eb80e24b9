import FoundationEssentials
import Glibc

/// The time by which things expire: it goes on through sleep, follows the wall clock forwards, and never goes back.
///
/// A wall clock that was set back, a dead battery or an old backup would otherwise make ages negative and revive what had
/// expired. Time = the later of the highest time ever kept and the wall clock at start, plus what CLOCK_BOOTTIME counted
/// since; a wall clock that is ahead of that pulls it up. While the machine is off only the wall clock counts.
package struct MonotonicWallClock: Sendable {
    /// Below this the two clocks only drift: NTP slews the wall clock by up to 0.5 ms a second.
    private static let drift: Int64 = 2_000

    package private(set) var now: MonotonicTime
    /// How far the wall clock is behind; what `doctor` tells as "the clock went back".
    package private(set) var behind: Duration = .zero
    private var boot: Int64

    /// The high-water mark is the highest time that was ever kept; nil at the first start.
    package init(highWater: MonotonicTime?, reading: ClockReading) {
        now = MonotonicTime(milliseconds: max(highWater?.milliseconds ?? .min, reading.wall))
        boot = reading.boot
        note(reading)
    }

    @discardableResult
    package mutating func advance(to reading: ClockReading) -> MonotonicTime {
        let passed = max(0, reading.boot - boot)
        boot = max(boot, reading.boot)
        now = MonotonicTime(milliseconds: max(now.milliseconds + passed, reading.wall))
        note(reading)
        return now
    }

    /// Goes back to the wall clock, after a person set that one right again; whoever calls this has ended for good
    /// everything that had expired until now.
    package mutating func restart(at reading: ClockReading) {
        self = MonotonicWallClock(highWater: nil, reading: reading)
    }

    private mutating func note(_ reading: ClockReading) {
        let distance = now.milliseconds - reading.wall
        behind = distance > Self.drift ? .milliseconds(distance) : .zero
    }
}

/// A moment on the clock that never runs backwards, in milliseconds since 1970.
package struct MonotonicTime: Hashable, Sendable, Comparable {
    package let milliseconds: Int64

    package init(milliseconds: Int64) { self.milliseconds = milliseconds }

    package static func < (one: MonotonicTime, other: MonotonicTime) -> Bool { one.milliseconds < other.milliseconds }

    static func + (time: MonotonicTime, seconds: Int) -> MonotonicTime {
        MonotonicTime(milliseconds: time.milliseconds + Int64(seconds) * 1_000)
    }

    static func - (one: MonotonicTime, other: MonotonicTime) -> Duration {
        .milliseconds(one.milliseconds - other.milliseconds)
    }

    /// As people read it.
    var date: Date { Date(timeIntervalSince1970: Double(milliseconds) / 1_000) }
}

extension MonotonicTime: Codable {
    package init(from decoder: any Decoder) throws {
        milliseconds = try decoder.singleValueContainer().decode(Int64.self)
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(milliseconds)
    }
}

/// What the machine's two clocks say at one moment, in milliseconds.
package struct ClockReading: Hashable, Sendable {
    /// Since 1970; anybody with the right may set it (CLOCK_REALTIME).
    package var wall: Int64
    /// Since the machine started, sleep included; nobody can set it (CLOCK_BOOTTIME).
    package var boot: Int64

    package init(wall: Int64, boot: Int64) {
        self.wall = wall
        self.boot = boot
    }

    package static func now() -> ClockReading {
        ClockReading(wall: read(CLOCK_REALTIME), boot: read(CLOCK_BOOTTIME))
    }

    private static func read(_ clock: clockid_t) -> Int64 {
        var time = timespec()
        clock_gettime(clock, &time)
        return Int64(time.tv_sec) * 1_000 + Int64(time.tv_nsec) / 1_000_000
    }
}

import CLinux
import FoundationEssentials
import Glibc

/// The clock for expiration. Counts time in suspend, follows the wall clock forwards, and never goes back.
///
/// A wall clock that was set back, an empty battery or an old backup would otherwise revive expired grants. The time
/// starts at the later of the saved high-water mark and the wall clock. CLOCK_BOOTTIME advances the time from there. If
/// the wall clock is ahead, the time jumps ahead. While the machine is off, only the wall clock advances.
package struct MonotonicWallClock: Sendable {
    /// Lag in milliseconds that counts as drift. NTP slews the wall clock by up to 0.5 ms per second.
    private static let drift: Int64 = 2_000

    package private(set) var now: MonotonicTime
    /// Difference between this clock and the wall clock behind it. `patchbay doctor` reports it as "the clock went
    /// back".
    package private(set) var wallClockLag: Duration = .zero
    private var boot: Int64

    /// Starts the clock. `highWater` is the highest saved time; nil at the first start.
    package init(highWater: MonotonicTime?, reading: ClockReading) {
        now = MonotonicTime(milliseconds: max(highWater?.milliseconds ?? .min, reading.wall))
        boot = reading.boot
        updateLag(reading)
    }

    @discardableResult
    package mutating func advance(to reading: ClockReading) -> MonotonicTime {
        let passed = max(0, reading.boot - boot)
        boot = max(boot, reading.boot)
        now = MonotonicTime(milliseconds: max(now.milliseconds + passed, reading.wall))
        updateLag(reading)
        return now
    }

    /// Restarts at the wall clock, after an administrator has corrected the wall clock. The caller must first end
    /// everything that has expired.
    package mutating func restart(at reading: ClockReading) {
        self = MonotonicWallClock(highWater: nil, reading: reading)
    }

    private mutating func updateLag(_ reading: ClockReading) {
        let distance = now.milliseconds - reading.wall
        wallClockLag = distance > Self.drift ? .milliseconds(distance) : .zero
    }
}

/// A time of `MonotonicWallClock`, in milliseconds since 1970.
package struct MonotonicTime: Hashable, Sendable, Comparable {
    package let milliseconds: Int64

    package static func < (one: MonotonicTime, other: MonotonicTime) -> Bool { one.milliseconds < other.milliseconds }

    static func + (time: MonotonicTime, seconds: Int) -> MonotonicTime {
        MonotonicTime(milliseconds: time.milliseconds + Int64(seconds) * 1_000)
    }

    static func - (one: MonotonicTime, other: MonotonicTime) -> Duration {
        .milliseconds(one.milliseconds - other.milliseconds)
    }

    /// The time as a date, for display.
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

/// A reading of the machine's two clocks, in milliseconds.
package struct ClockReading: Hashable, Sendable {
    /// Milliseconds since 1970 (CLOCK_REALTIME). Can be set by privileged users.
    package var wall: Int64
    /// Milliseconds since boot, including suspend (CLOCK_BOOTTIME). Cannot be set.
    package var boot: Int64

    package static func now() -> ClockReading {
        ClockReading(
            wall: CLinux_nanoseconds(CLOCK_REALTIME) / 1_000_000,
            boot: CLinux_nanoseconds(CLOCK_BOOTTIME) / 1_000_000
        )
    }
}

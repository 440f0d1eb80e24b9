import Glibc

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

import CLinux
import Glibc

/// A point in time of CLOCK_BOOTTIME, which is the time of `ContinuousClock` on Linux.
///
/// `ContinuousClock.Instant` is not frozen, so a value that contains one has no static layout, and each copy is a call
/// of the runtime. The relay keeps several for each connection.
package struct MonotonicInstant: InstantProtocol, Sendable {
    @usableFromInline
    let sinceBoot: Duration

    @inlinable
    init(sinceBoot: Duration) { self.sinceBoot = sinceBoot }

    package static var now: MonotonicInstant {
        MonotonicInstant(sinceBoot: .nanoseconds(CLinux_nanoseconds(CLOCK_BOOTTIME)))
    }

    @inlinable
    package func advanced(by duration: Duration) -> MonotonicInstant {
        MonotonicInstant(sinceBoot: sinceBoot + duration)
    }

    @inlinable
    package func duration(to other: MonotonicInstant) -> Duration { other.sinceBoot - sinceBoot }

    @inlinable
    package static func + (instant: MonotonicInstant, duration: Duration) -> MonotonicInstant {
        instant.advanced(by: duration)
    }

    @inlinable
    package static func - (end: MonotonicInstant, start: MonotonicInstant) -> Duration { start.duration(to: end) }

    @inlinable
    package static func < (left: MonotonicInstant, right: MonotonicInstant) -> Bool { left.sinceBoot < right.sinceBoot }
}

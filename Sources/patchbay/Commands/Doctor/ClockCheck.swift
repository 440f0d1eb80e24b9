import CLinux
import FoundationEssentials
import Model

/// Checks that a time server keeps the system clock, because grants, invites and leases expire by it.
struct ClockCheck {
    var readTime: () -> Date = { Date() }
    var readIsSynchronized: () -> Bool = { CLinux_clock_is_synchronized() == 1 }

    /// 2026-01-01, before the first release. Small computers without a battery start in 1970.
    private static let earliest = Date(timeIntervalSince1970: 1_767_225_600)

    func run() -> Check {
        let time = readTime()
        if time < Self.earliest {
            return finding("the system clock says \(JSONCoding.text(of: time)), and grants expire by it")
        }
        guard readIsSynchronized() else {
            return finding("no time server keeps the system clock, by which grants expire")
        }
        return .ok("clock", "a time server keeps the system clock")
    }

    private func finding(_ detail: String) -> Check {
        Check.warn("clock", detail, try: "sudo timedatectl set-ntp true")
    }
}

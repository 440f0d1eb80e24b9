import FoundationEssentials
import Glibc
package import Testing

/// Something of the machine that a test cannot do without.
package enum Requirement: String, Sendable, CaseIterable {
    case root
    /// The right to make network and mount namespaces.
    case namespaces
    case avahi
    case usbmuxd
    /// The real one, to compare with.
    case iproxy
    case python
    /// Its tools; no running systemd.
    case systemd
    /// The reader of QR codes, and what turns an SVG into pixels for it.
    case zbar

    /// Why this machine does not have it; nil when it does.
    package var missing: String? { Self.findings[self] }

    /// Looked up once: each is a property of the machine, not of a test.
    private static let findings = Dictionary(
        uniqueKeysWithValues: allCases.compactMap { requirement in requirement.look().map { (requirement, $0) } }
    )

    private func look() -> String? {
        switch self {
        case .root: geteuid() == 0 ? nil : "not running as root"
        case .namespaces: NamespaceProbe.refusal
        case .avahi: Self.absent(["avahi-daemon", "avahi-publish-service", "dbus-daemon"])
        case .usbmuxd: Self.absent(["usbmuxd", "make", "cc", "flock"]) ?? Self.absentHeader
        case .iproxy: Self.absent(["iproxy", "stdbuf"])
        case .python: Self.absent(["python3"])
        case .systemd: Self.absent(["systemd-analyze", "systemd-socket-activate"])
        case .zbar: Self.absent(["zbarimg", "rsvg-convert"])
        }
    }

    private static func absent(_ programs: [String]) -> String? {
        programs.first { !Executable.isInstalled($0) }.map { "\($0) is not installed" }
    }

    private static var absentHeader: String? {
        access("/usr/include/libusb-1.0/libusb.h", R_OK) == 0 ? nil : "libusb-1.0-0-dev is not installed"
    }
}

extension Trait where Self == ConditionTrait {
    /// Skips the test with the reason on a machine that lacks something.
    ///
    /// With `PATCHBAY_REQUIRE_ALL=1` in the environment, as in CI, the test fails instead.
    package static func needs(_ requirements: Requirement...) -> Self {
        let missing = requirements.compactMap(\.missing)
        let reason = "skipped, because here \(missing.joined(separator: ", ")); `make setup` installs what tests need"
        return .enabled(Comment(rawValue: reason)) {
            guard !missing.isEmpty else { return true }
            if ProcessInfo.processInfo.environment["PATCHBAY_REQUIRE_ALL"] == "1" {
                throw RigError("this run may not skip anything, but here \(missing.joined(separator: ", "))")
            }
            return false
        }
    }
}

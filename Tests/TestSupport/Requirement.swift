import FoundationEssentials
import Glibc
package import Testing

/// A property of the machine that a test requires.
package enum Requirement: String, Sendable, CaseIterable {
    case root
    /// The permission to create network and mount namespaces.
    case namespaces
    case avahi
    case usbmuxd
    /// The adb server.
    case adb
    /// The real iproxy, for comparison.
    case iproxy
    case python
    /// The C compiler.
    case compiler
    /// An independent implementation of TLS, and curl.
    case openssl
    /// A client that verifies names and authorities of certificates by itself.
    case node
    /// The tools of systemd; systemd itself need not run.
    case systemd
    /// The OpenSSH client and server.
    case ssh
    /// The QR code reader and the SVG renderer.
    case zbar
    /// The formatters and checkers of manual pages.
    case manual
    /// The checker of metrics.
    case prometheus
    /// The shells with completions.
    case shells
    /// Containers, and root to run them.
    case podman
    /// The server and client of etcd, and openssl for their certificates.
    case etcd
    /// The browser without a window.
    case browser

    /// The reason why the requirement is not met, or nil if it is.
    package var missing: String? { Self.findings[self] }

    /// Checked once, because each requirement is a property of the machine.
    private static let findings = Dictionary(
        uniqueKeysWithValues: allCases.compactMap { requirement in requirement.look().map { (requirement, $0) } }
    )

    private func look() -> String? {
        switch self {
        case .root: geteuid() == 0 ? nil : "not running as root"
        case .namespaces: NamespaceProbe.refusal
        case .avahi: Self.absent(["avahi-daemon", "avahi-publish-service", "dbus-daemon"])
        case .usbmuxd: Self.absent(["usbmuxd", "make", "cc", "flock"]) ?? Self.absentHeader
        case .adb: Self.absent(["adb", "python3"])
        case .iproxy: Self.absent(["iproxy", "stdbuf"])
        case .openssl: Self.absent(["openssl", "curl"])
        case .node: Self.absent(["node"])
        case .python: Self.absent(["python3"])
        case .compiler: Self.absent(["cc"])
        case .systemd: Self.absent(["systemd-analyze", "systemd-socket-activate"])
        case .ssh: Self.absent(["ssh", "sshd", "ssh-keygen"])
        case .zbar: Self.absent(["zbarimg", "rsvg-convert"])
        case .manual: Self.absent(["man", "mandoc", "lexgrog"])
        case .prometheus: Self.absent(["promtool", "curl"])
        case .shells: Self.absent(["bash", "zsh", "fish"])
        case .etcd: Self.absent(["etcd", "etcdctl", "openssl"])
        case .browser: Self.absent(["chromium-headless-shell"])
        case .podman: Self.absent(["podman", "runc", "curl"]) ?? (geteuid() == 0 ? nil : "not running as root")
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
    /// Skips the test with the reason if a requirement is not met.
    ///
    /// With `PATCHBAY_REQUIRE_ALL=1` in the environment, as in CI, the test fails instead.
    package static func needs(_ requirements: Requirement...) -> Self {
        let missing = requirements.compactMap(\.missing)
        let reason = "skipped, because here \(missing.joined(separator: ", ")); `make setup` installs what tests need"
        return .enabled(Comment(rawValue: reason)) {
            guard !missing.isEmpty else { return true }
            if ProcessInfo.processInfo.environment["PATCHBAY_REQUIRE_ALL"] == "1" {
                throw TestSupportError("this run may not skip anything, but here \(missing.joined(separator: ", "))")
            }
            return false
        }
    }
}

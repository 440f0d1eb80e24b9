/// A part of the broker that can be degraded, by its name in `status`, `doctor`, `/health` and `/metrics`.
package enum BrokerPart: String, CaseIterable, Sendable, Codable {
    case bonjour
    case usbmuxd
    case adb
    case debugLink = "debuglink"
    case usbmuxServer = "usbmux-server"
    /// The list of endpoints, if it exceeds a limit.
    case list
    case team
    /// The TCP listener, if another program has its address.
    case api
    /// The stored access state.
    case access
    /// The state folder.
    case state
    case remote
}

extension BrokerStatus {
    /// The parts that do not work, or work only in part, in the order of `BrokerPart`.
    package var degradedParts: [BrokerPart] { BrokerPart.allCases.filter(isDegraded) }

    /// The degraded parts without Avahi and usbmuxd where these are not installed or do not run. A machine without phones
    /// has no usbmuxd, because udev starts it with the first phone.
    package var unhealthyParts: [BrokerPart] {
        let absent = sources.filter {
            $0.state == .missing && [.bonjour, .usbmuxd].contains(BrokerPart(rawValue: $0.name))
        }
        return degradedParts.filter { part in !absent.contains { $0.name == part.rawValue } }
    }

    private func isDegraded(_ part: BrokerPart) -> Bool {
        switch part {
        case .access: findings?.isEmpty == false
        case .state: storage?.isEmpty == false
        case .remote: remote?.state == .waiting
        case .bonjour, .usbmuxd, .adb, .debugLink, .usbmuxServer, .list, .team, .api:
            sources.contains { $0.name == part.rawValue && $0.isDegraded }
        }
    }
}

extension SourceStatus {
    /// True for a source that does not work, or works only in part: it then has a hint.
    package var isDegraded: Bool {
        switch state {
        case .starting, .missing: true
        case .ok: hint != nil
        case .off: false
        }
    }
}

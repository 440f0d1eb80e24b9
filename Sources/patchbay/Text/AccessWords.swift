import FoundationEssentials
import Model

/// Who may do what, as people say it.
extension Formatting {
    static func caller(_ caller: AuditActor) -> String {
        switch caller {
        case .process(let uid, let pid, let executable): "user \(uid), \(executable) (process \(pid))"
        case .grant(let id): "grant \(id)"
        case .stranger: "somebody unknown"
        case .broker: "patchbayd"
        }
    }

    static func scopes(_ permissions: Permissions) -> String {
        permissions.scopes.sorted().map(\.rawValue).joined(separator: ", ")
    }

    static func selector(_ selector: Selector) -> String {
        switch selector {
        case .all: "all"
        case .endpoints(let ids): ids.sorted().map(\.text).joined(separator: ", ")
        case .bundles(let bundles): bundles.sorted().map { "app \(SanitizedText($0))" }.joined(separator: ", ")
        }
    }

    static func binding(_ binding: GrantBinding) -> String {
        switch binding {
        case .bearer: "its token"
        case .user(let uid): "user \(uid)"
        case .key(let fingerprint): "key \(SanitizedText(fingerprint.prefix(8)))…"
        }
    }

    /// `on iphone.local at 192.168.1.20 (wlan0)`.
    static func place(_ approval: Approval) -> String {
        "on \(approval.host) at "
            + approval.addresses.map { "\($0.address)" + ($0.interface.map { " (\($0))" } ?? "") }
            .joined(separator: ", ")
            + (approval.port.map { ", port \($0)" } ?? "")
    }

    /// `in 9 min`, `12 s ago`.
    static func from(_ now: Date, to date: Date) -> String {
        let seconds = date.timeIntervalSince(now)
        return seconds > 0 ? "in \(duration(seconds))" : ago(date, now: now)
    }

    /// `9:05`.
    static func countdown(_ seconds: Double) -> String {
        let left = Int(max(0, seconds.rounded(.up)))
        let (minutes, rest) = (left / 60, left % 60)
        let hours = minutes / 60
        let tail = rest < 10 ? "0\(rest)" : "\(rest)"
        if hours == 0 { return "\(minutes):\(tail)" }
        return "\(hours):\(minutes % 60 < 10 ? "0" : "")\(minutes % 60):\(tail)"
    }
}

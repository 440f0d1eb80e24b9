import FoundationEssentials
import Model

/// The tables of `patchbay invites`, `patchbay grants` and `patchbay requests`.
enum AccessTables {
    static func table(of invites: [Invite], now: Date = Date()) -> Table {
        Table(
            of: invites,
            [
                .init("ID", \.id), .init("USE", .optional) { ($0.use ?? .local).rawValue },
                .init("STATE", style: { $0.endReason == nil ? .green : .dim }) { invite in
                    invite.endReason?.rawValue ?? "open, expires \(Formatting.from(now, to: invite.expiresAt))"
                },
                .init("USED", .optional) { "\($0.useCount) of \($0.maxUses)" },
                .init("FAILED", .optional, style: { $0.failedAttempts > 0 ? .yellow : .plain }) {
                    "\($0.failedAttempts)"
                },
                .init("SCOPES", .flexible, \.permissions.description),
                .init("ENDPOINTS", .flexible) { Formatting.selector($0.permissions.selector) },
                .init("CREATED BY", .flexible) { Formatting.caller($0.createdBy) },
            ]
        )
    }

    static func table(of grants: [Grant], now: Date = Date()) -> Table {
        Table(
            of: grants,
            [
                .init("ID", \.id), .init("NAME", .wraps, \.name.text),
                .init("STATE", .wraps, style: { $0.endReason == nil ? .green : .dim }) { grant in
                    grant.endReason?.rawValue ?? "valid, expires \(Formatting.from(now, to: grant.expiresAt))"
                },
                .init("USED", style: { _ in .dim }) { Formatting.ago($0.lastUsedAt, now: now) },
                .init("BINDING", .wraps) { grant in
                    Formatting.binding(grant.binding) + (grant.remote == true ? ", remote" : "")
                        + (grant.resource.map { ", at \(SanitizedText($0, limit: .max))" } ?? "")
                },
                .init("SCOPES", .wraps, \.permissions.description),
                .init("ENDPOINTS", .wraps) { Formatting.selector($0.permissions.selector) },
            ]
        )
    }

    static func table(of requests: [AccessRequest], now: Date = Date()) -> Table {
        Table(
            of: requests,
            [
                .init("CODE", style: { _ in .bold }, \.userCode),
                .init("EXPIRES") { Formatting.from(now, to: $0.expiresAt) },
                .init("REQUESTER", .wraps, \.asker),
                .init("NAME", .wraps) { "\"\($0.name)\"" }, .init("SCOPES", .wraps, \.permissions.description),
                .init("ENDPOINTS", .wraps) { Formatting.selector($0.permissions.selector) },
            ]
        )
    }

    /// Describes a grant: `"Claude" may registry.read, tunnel.open on all, expires in 7 h (grant 0a1b2c3d)`.
    static func line(_ grant: Grant, now: Date = Date()) -> String {
        "\"\(grant.name)\" may \(grant.permissions) on \(Formatting.selector(grant.permissions.selector)), "
            + "expires \(Formatting.from(now, to: grant.expiresAt)) (grant \(grant.id))"
    }

    /// Describes a pending request and the command that lists requests, in two lines. An owner looks before an approval.
    static func notice(_ request: AccessRequest, isColoured: Bool) -> String {
        let title = ANSIStyle.yellow.paint("request:", isOn: isColoured)
        return "\(title) \(request.summary)\ntry: patchbay requests"
    }
}

/// Access control values as text.
extension Formatting {
    static func caller(_ caller: AuditActor) -> String { caller.summary }

    static func selector(_ selector: Selector) -> String { selector.summary }

    static func binding(_ binding: GrantBinding) -> String {
        switch binding {
        case .bearer: "its token"
        case .user(let uid): "user \(uid)"
        case .dashboard(let uid): "browser of user \(uid)"
        case .socket(let path): "socket \(SanitizedText(path))"
        case .key(let key): "key \("\(key)".prefix(8))…"
        }
    }

    /// Describes the approved host and addresses: `on iphone.local at 192.168.1.20 (wlan0)`.
    static func place(_ approval: Approval) -> String {
        "on \(approval.machine) at "
            + approval.addresses.map { "\($0.address)" + ($0.interface.map { " (\($0))" } ?? "") }
            .joined(separator: ", ")
            + (approval.port.map { ", port \($0)" } ?? "")
    }

    /// Describes a date relative to now: `in 9 min`, `12 s ago`.
    static func from(_ now: Date, to date: Date) -> String {
        let seconds = date.timeIntervalSince(now)
        return seconds > 0 ? "in \(duration(seconds))" : ago(date, now: now)
    }

    /// Formats a remaining time: `9:05`.
    static func countdown(_ seconds: Double) -> String {
        let left = Int(max(0, seconds.rounded(.up)))
        let (minutes, rest) = (left / 60, left % 60)
        let hours = minutes / 60
        let tail = rest < 10 ? "0\(rest)" : "\(rest)"
        if hours == 0 { return "\(minutes):\(tail)" }
        return "\(hours):\(minutes % 60 < 10 ? "0" : "")\(minutes % 60):\(tail)"
    }
}

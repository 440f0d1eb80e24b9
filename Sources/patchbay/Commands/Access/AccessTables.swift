import FoundationEssentials
import Model

/// Invites, grants and requests as their verbs show them.
enum AccessTables {
    static func table(of invites: [Invite], now: Date = Date()) -> Table {
        var table = Table(columns: [
            .init(title: "ID"), .init(title: "STATE"), .init(title: "USED"), .init(title: "WRONG"),
            .init(title: "GIVES", isFlexible: true), .init(title: "ENDPOINTS", isFlexible: true),
            .init(title: "MADE BY", isFlexible: true),
        ])
        table.rows = invites.map { invite in
            let state = invite.end.map(\.rawValue) ?? "open, ends \(Formatting.from(now, to: invite.expires))"
            return [
                .init(invite.id), .init(state, invite.end == nil ? .green : .dim),
                .init("\(invite.used) of \(invite.uses)"),
                .init("\(invite.wrong)", invite.wrong > 0 ? .yellow : .plain),
                .init(Formatting.scopes(invite.permissions)),
                .init(Formatting.selector(invite.permissions.selector)), .init(Formatting.caller(invite.createdBy)),
            ]
        }
        return table
    }

    static func table(of grants: [Grant], now: Date = Date()) -> Table {
        var table = Table(columns: [
            .init(title: "ID"), .init(title: "NAME", isFlexible: true), .init(title: "STATE"), .init(title: "USED"),
            .init(title: "KNOWN BY"), .init(title: "MAY", isFlexible: true),
            .init(title: "ENDPOINTS", isFlexible: true),
        ])
        table.rows = grants.map { grant in
            let state = grant.end.map(\.rawValue) ?? "valid, ends \(Formatting.from(now, to: grant.expires))"
            return [
                .init(grant.id), .init(grant.name.text), .init(state, style(of: grant)),
                .init(Formatting.ago(grant.lastUsed, now: now), .dim), .init(Formatting.binding(grant.binding)),
                .init(Formatting.scopes(grant.permissions)), .init(Formatting.selector(grant.permissions.selector)),
            ]
        }
        return table
    }

    static func table(of requests: [AccessRequest], now: Date = Date()) -> Table {
        var table = Table(columns: [
            .init(title: "CODE"), .init(title: "ENDS"), .init(title: "WHO ASKS", isFlexible: true),
            .init(title: "CALLS ITSELF", isFlexible: true), .init(title: "WANTS", isFlexible: true),
            .init(title: "ENDPOINTS", isFlexible: true),
        ])
        table.rows = requests.map { request in
            [
                .init(request.code, .bold), .init(Formatting.from(now, to: request.expires)),
                .init(Formatting.caller(request.asker)), .init("\"\(request.name)\""),
                .init(Formatting.scopes(request.permissions)), .init(Formatting.selector(request.permissions.selector)),
            ]
        }
        return table
    }

    /// `"Claude" may registry.read, tunnel.open on all, ends in 7 h (grant 0a1b2c3d)`.
    static func line(_ grant: Grant, now: Date = Date()) -> String {
        "\"\(grant.name)\" may \(Formatting.scopes(grant.permissions)) on \(Formatting.selector(grant.permissions.selector)), "
            + "ends \(Formatting.from(now, to: grant.expires)) (grant \(grant.id))"
    }

    private static func style(of grant: Grant) -> ANSIStyle {
        switch grant.end {
        case nil: .green
        case .expired, .idle, .revoked: .dim
        case .reused: .red
        }
    }
}

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

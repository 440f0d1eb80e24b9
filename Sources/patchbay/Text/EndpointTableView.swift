import FoundationEssentials
import Model

/// The endpoints as `patchbay list` shows them.
enum EndpointTableView {
    static func table(of endpoints: [Endpoint], now: Date = Date()) -> Table {
        // When every endpoint is approved, as on the cable, the column has no information.
        let saysApproval = endpoints.contains { $0.approval != .approved }
        var columns: [Table.Column] = [
            .init(title: "ID"), .init(title: "KIND"), .init(title: "APP", isFlexible: true), .init(title: "STATE"),
        ]
        if saysApproval { columns.append(.init(title: "APPROVAL")) }
        columns += [.init(title: "ROUTE", isFlexible: true), .init(title: "SEEN")]
        var table = Table(columns: columns)
        table.rows = endpoints.sorted { $0.id < $1.id }.map { endpoint in
            var row: [Table.Cell] = [
                .init(endpoint.id.text), .init(endpoint.kind.text),
                .init((endpoint.app.isEmpty ? endpoint.name : endpoint.app).text),
                .init(endpoint.state.rawValue, endpoint.state.style),
            ]
            if saysApproval { row.append(.init(endpoint.approval.rawValue, endpoint.approval.style)) }
            row += [
                .init(route(of: endpoint)),
                .init(endpoint.lastSeen.map { Formatting.ago($0, now: now) } ?? "never", .dim),
            ]
            return row
        }
        return table
    }

    /// The best route, and how many more there are; with how many of these are not approved, when the best one is.
    private static func route(of endpoint: Endpoint) -> String {
        guard let best = endpoint.routes.first else { return "-" }
        let more = endpoint.routes.count - 1
        let unapproved = endpoint.routes.count { !$0.isApproved }
        guard more > 0 else { return best.description }
        let note = best.isApproved && unapproved > 0 ? " (\(unapproved) not approved)" : ""
        return "\(best) +\(more)\(note)"
    }
}

extension Endpoint.State {
    var style: ANSIStyle {
        switch self {
        case .online: .green
        case .suspect: .yellow
        case .offline: .dim
        case .blocked: .red
        }
    }
}

extension Endpoint.Approval {
    var style: ANSIStyle {
        switch self {
        case .approved: .plain
        case .discovered: .yellow
        case .changed: .red
        }
    }
}

import FoundationEssentials
import Model

/// The endpoints as `patchbay list` shows them.
enum EndpointListing {
    static func table(of endpoints: [Endpoint], now: Date = Date()) -> Table {
        var table = Table(columns: [
            .init(title: "ID"), .init(title: "KIND"), .init(title: "APP", isFlexible: true), .init(title: "STATE"),
            .init(title: "APPROVAL"), .init(title: "ROUTE", isFlexible: true), .init(title: "SEEN"),
        ])
        table.rows = endpoints.sorted { $0.id < $1.id }.map { endpoint in
            [
                .init(endpoint.id.text), .init(endpoint.kind.text),
                .init((endpoint.app.isEmpty ? endpoint.name : endpoint.app).text),
                .init(endpoint.state.rawValue, endpoint.state.style),
                .init(endpoint.approval.rawValue, endpoint.approval.style), .init(route(of: endpoint)),
                .init(endpoint.lastSeen.map { Words.ago($0, now: now) } ?? "never", .dim),
            ]
        }
        return table
    }

    /// The best route, and how many more there are.
    private static func route(of endpoint: Endpoint) -> String {
        guard let best = endpoint.routes.first else { return "-" }
        let more = endpoint.routes.count - 1
        return more > 0 ? "\(best) +\(more)" : best.description
    }
}

extension Endpoint.State {
    var style: Style {
        switch self {
        case .online: .green
        case .suspect: .yellow
        case .offline: .dim
        case .blocked: .red
        }
    }
}

extension Endpoint.Approval {
    var style: Style {
        switch self {
        case .approved: .plain
        case .discovered: .yellow
        case .changed: .red
        }
    }
}

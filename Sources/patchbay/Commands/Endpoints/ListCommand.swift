import ArgumentParser
import Client
import FoundationEssentials
import Model

struct ListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "List every endpoint: what runs, where, and how to reach it.",
        discussion: """
            Bonjour services, debug servers behind a cable and static endpoints in one table. An id stays the same \
            when the app restarts, the phone is plugged in again, or the broker restarts.

            STATE is online (something proved lately that it is there), suspect (the last proof failed or is old), \
            offline (gone; kept, so that its id works when it comes back) or blocked (listed and never connected to). \
            ROUTE is the best way to it, +1 that there is one more; `patchbay show` has all of them.

              patchbay list
              patchbay list --state online --app com.example.shop
              patchbay list --watch --json | jq -c .endpoint.state
            """,
        aliases: ["ls"]
    )

    @Flag(help: "Go on with every change, until Ctrl-C.")
    var watch = false
    @Option(help: ArgumentHelp("Only this state: online, suspect, offline or blocked.", valueName: "state"))
    var state: Endpoint.State?
    @Option(help: ArgumentHelp("Only this app, by bundle identifier, its last part, or name.", valueName: "app"))
    var app: String?
    @OptionGroup var format: JSONOption
    @OptionGroup var options: GlobalOptions

    func run() async throws {
        let output = options.output
        if watch {
            let selection = WatchPrinter.Selection(showsDevices: false, state: state, app: app)
            let feed = WatchPrinter(selection: selection, isJSON: format.json, output: output, errors: .errors())
            return try await feed.run(options.client)
        }
        let list = try await options.client.endpoints(state: state, app: app)
        if format.json { return try output.document(list) }
        if list.endpoints.isEmpty { return try output.line(nothing) }
        try output.table(EndpointTableView.table(of: list.endpoints))
    }

    private var nothing: String {
        if state != nil || app != nil { return "No endpoint fits. `patchbay list` shows all of them." }
        return "No endpoint yet. Start a debug build on this network or plug in a phone; `patchbay doctor` checks both."
    }
}

extension Endpoint.State: ExpressibleByArgument {
    /// Said to whoever gives another one.
    static var allValueStrings: [String] { [Self.online, .suspect, .offline, .blocked].map(\.rawValue) }
}

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

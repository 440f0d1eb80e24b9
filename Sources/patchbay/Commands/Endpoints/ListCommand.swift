import ArgumentParser
import Client
import FoundationEssentials
import Model

struct ListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "List the endpoints with their apps, states and routes.",
        discussion: """
            Lists Bonjour services, debug servers of phones on a cable, and static endpoints. IDs stay the same when \
            the app, the phone or the broker restarts.

            STATE is online (recently confirmed), suspect (the last check failed or is old), offline (gone; its ID is \
            reserved for its return) or blocked (never connected to). ROUTE is the best route; +1 means one more. \
            `patchbay show` lists all routes.

            In a team, HOST is the host that reaches the endpoint. `lab2: usb` is a route of that host.

              patchbay list
              patchbay list --state online --app com.example.shop
              patchbay list --kind web --device "Anna's iPhone"
              patchbay list --host lab2
              patchbay list --watch --json | jq -c .endpoint.state
            """,
        aliases: ["ls"]
    )

    @Flag(help: "Print each change until Ctrl-C.")
    var watch = false
    @Option(help: ArgumentHelp("List only this state: online, suspect, offline or blocked.", valueName: "state"))
    var state: Endpoint.State?
    @Option(help: ArgumentHelp("List only this kind, such as appreveal, dart-vm or web.", valueName: "kind"))
    var kind: String?
    @Option(help: ArgumentHelp("List only this app: bundle identifier, its last part, or name.", valueName: "app"))
    var app: String?
    @Option(
        help: ArgumentHelp("List only the apps of this phone: name or UDID, or its beginning.", valueName: "device")
    )
    var device: String?
    @Option(help: ArgumentHelp("List only the endpoints of this host of the team.", valueName: "host"))
    var host: HostName?
    @OptionGroup var format: ListOptions
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        if watch, format.quiet { throw ValidationError("--watch and --quiet exclude each other.") }
    }

    var filter: EndpointFilter { EndpointFilter(state: state, kind: kind, app: app, device: device, host: host) }

    func run() async throws {
        let output = options.output
        if watch {
            let feed = WatchPrinter(
                endpoints: filter,
                showsDevices: false,
                isJSON: format.json,
                output: output,
                errors: .errors()
            )
            return try await feed.run(options.client)
        }
        let list = try await options.client.endpoints(state: state, app: app, host: host).filtered(by: filter)
        let notes = [
            VMServiceText.hint(for: list.endpoints), EndpointTableView.note(on: list.endpoints),
            TeamText.staleNote(on: list.endpoints.compactMap(\.host)),
        ].compactMap { $0 }
        try format.show(
            list,
            ids: list.endpoints.map(\.id.text).sorted(),
            table: EndpointTableView.table(of: list.endpoints),
            ifEmpty: try await emptyMessage(list),
            footer: notes.isEmpty ? nil : notes.joined(separator: "\n"),
            on: output,
            hint: options.hint
        )
    }

    /// The sentence for an empty list. Asks for the kinds that exist if the list is empty because of its kind.
    private func emptyMessage(_ list: EndpointList) async throws -> String {
        if list.endpoints.isEmpty, let kind {
            let kinds = Set(try await options.client.endpoints().endpoints.map(\.kind.text))
            if !kinds.isEmpty, !kinds.contains(kind.lowercased()) {
                let known = kinds.sorted().joined(separator: ", ")
                return "No endpoint has the kind \"\(SanitizedText(kind))\". The kinds now: \(known)."
            }
        }
        if let host {
            return "No matching endpoints. `patchbay team` shows whether \(host) is online, and `patchbay list` shows "
                + "all endpoints."
        }
        if filter.isActive { return "No matching endpoints. `patchbay list` shows all endpoints." }
        return "No endpoints. Start a debug build on this network or plug in a phone. `patchbay doctor` checks both."
    }
}

extension HostName: ExpressibleByArgument {
    package init?(argument: String) { self.init(argument.lowercased()) }
}

extension Endpoint.State: ExpressibleByArgument {
    /// The values in the error message for an invalid state.
    static var allValueStrings: [String] { [Self.online, .suspect, .offline, .blocked].map(\.rawValue) }
}

/// The table of `patchbay list`.
enum EndpointTableView {
    static func table(of endpoints: [Endpoint], now: Date = Date()) -> Table {
        Table(
            of: endpoints.sorted { $0.id < $1.id },
            [
                .init("ID", \.id.text), .init("KIND", .optional, \.kind.text), .init("APP", .flexible, appName),
                .init("STATE", style: \.state.style, \.state.rawValue),
                .init(
                    "APPROVAL",
                    .fixed,
                    // Every endpoint on USB is approved.
                    isShown: endpoints.contains { $0.approval != .approved },
                    style: \.approval.style,
                    \.approval.rawValue
                ),
                .init("LEASE", .flexible, isShown: endpoints.contains { $0.lease != nil }, style: { _ in .yellow }) {
                    $0.lease.map(LeaseTableView.holder) ?? "-"
                },
                .init(
                    "HOST",
                    isShown: endpoints.contains { $0.host != nil },
                    cells: { endpoint in
                        TeamText.cell(of: endpoint.host, now: now)
                    }
                ),
                .init("ROUTE", .flexible) { TeamText.route(of: $0) ?? route(of: $0) },
                .init("SEEN", .optional, style: { _ in .dim }) { Formatting.seen($0, now: now) },
            ]
        )
    }

    /// Returns the app as its source names it. A static endpoint without `--app` has the name of the server, if the
    /// server has reported one.
    static func appName(of endpoint: Endpoint) -> String {
        if endpoint.sources == [.config], !endpoint.routes.contains(where: \.appIsBundleID) {
            return endpoint.server?.text ?? "-"
        }
        return (endpoint.app.isEmpty ? endpoint.name : endpoint.app).text
    }

    /// A line about endpoints on a cable that may be the same app as others. Nil if there are none.
    static func note(on endpoints: [Endpoint]) -> String? {
        let cabled = endpoints.filter { $0.location.udid != nil }.sorted { $0.id < $1.id }
        let groups = cabled.compactMap { endpoint in
            endpoint.possiblySameAs.map { ([endpoint.id] + $0).map(\.text).joined(separator: ", ") }
        }
        return groups.isEmpty ? nil : "Possibly the same app: \(groups.joined(separator: "; "))."
    }

    /// Formats the best route and the number of further routes, with the number of unapproved routes.
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
        case .denied: .dim
        case .pending: .yellow
        case .changed: .red
        }
    }
}

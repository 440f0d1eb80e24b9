import Client
import FoundationEssentials
import Model

/// The output of `patchbay` without arguments: what runs, what was found, and the commands that make sense now.
struct Overview {
    /// The rows of the list of endpoints. `patchbay list` shows the others.
    private static let rowLimit = 10
    private static let stepLimit = 3

    /// A command that makes sense now.
    struct Step: Equatable {
        let command: String
        /// Completes the sentence "This command …".
        let effect: String
    }

    let status: BrokerStatus
    var endpoints: [Endpoint] = []
    var devices: [Device] = []
    var requests: [AccessRequest] = []
    /// The grant of the client; nil for an owner.
    var grant: Grant?

    /// Asks the broker. A part that the caller may not see is empty.
    ///
    /// - Throws: `ClientError` if the broker does not answer.
    init(_ client: PatchbayClient) async throws {
        status = try await client.status()
        endpoints = (try? await client.endpoints().endpoints) ?? []
        devices = (try? await client.devices()) ?? []
        requests = (try? await client.requests()) ?? []
        // An owner sees the process.
        if status.pid == nil { grant = try? await client.ownGrant() }
    }

    init(
        status: BrokerStatus,
        endpoints: [Endpoint] = [],
        devices: [Device] = [],
        requests: [AccessRequest] = [],
        grant: Grant? = nil
    ) {
        (self.status, self.endpoints, self.devices, self.requests) = (status, endpoints, devices, requests)
        self.grant = grant
    }

    /// Formats the overview for a terminal with this number of columns.
    func text(width: Int?, now: Date = Date(), isColoured: Bool) -> String {
        var lines = [
            "patchbayd \(status.version) has run for \(Formatting.duration(now.timeIntervalSince(status.startedAt)))."
        ]
        lines += status.problems.filter { $0.severity != .information }
            .map { "\($0.subject): \(Console.plain($0.text))" }
        lines += ["", phones]
        if endpoints.isEmpty, let grant {
            lines.append("No apps yet that your grant may see: \(AccessTables.line(grant)).")
        } else if endpoints.isEmpty {
            lines.append(
                "No apps yet. A debug build on this network, or on a plugged-in phone, appears here by itself."
            )
        } else {
            lines.append(EndpointTableView.table(of: shown, now: now).text(width: width, isColoured: isColoured))
            if endpoints.count > shown.count {
                lines.append("and \(endpoints.count - shown.count) more: patchbay list")
            }
        }
        let steps = steps + [Step(command: "patchbay --help", effect: "lists all commands")]
        let indent = steps.map(\.command.count).max() ?? 0
        lines += ["", "Next:"] + steps.map { "  \($0.command.padded(to: indent))  \($0.effect)" }
        return lines.joined(separator: "\n")
    }

    /// The endpoints of the table: those that run first.
    private var shown: [Endpoint] {
        let running = endpoints.filter { $0.state == .online } + endpoints.filter { $0.state != .online }
        return Array(running.prefix(Self.rowLimit))
    }

    private var phones: String {
        let phones = Dictionary(devices.map { ($0.udid, $0) }) { first, _ in first }.values.sorted { $0.udid < $1.udid }
        guard !phones.isEmpty else {
            return grant.map { $0.permissions.selector != .all } == true
                ? "Your grant does not show phones." : "No phone is attached."
        }
        let names = phones.map { $0.label?.text ?? $0.name?.text ?? $0.udid.text }.prefix(Self.rowLimit)
        let more = phones.count > names.count ? " and \(phones.count - names.count) more" : ""
        return "\(phones.count) \(phones.count == 1 ? "phone" : "phones"): \(names.joined(separator: ", "))\(more)"
    }

    /// The next commands, the most urgent first.
    var steps: [Step] {
        var steps: [Step] = status.problems.filter { $0.severity == .problem }.prefix(1).compactMap { problem in
            problem.command.map { Step(command: Console.plain($0), effect: "solves the problem of \(problem.subject)") }
        }
        if !requests.isEmpty {
            steps.append(Step(command: "patchbay requests", effect: "shows the programs that wait for your answer"))
        }
        steps += endpoints.isEmpty ? stepsWithoutApps : stepsOfApps
        return Array(steps.prefix(Self.stepLimit))
    }

    private var stepsWithoutApps: [Step] {
        guard grant == nil else {
            return [Step(command: "patchbay list --watch", effect: "prints a line when an app of your grant appears")]
        }
        let port =
            devices.isEmpty
            ? Step(command: "patchbay devices --watch", effect: "prints a line when a phone is plugged in")
            : Step(command: "patchbay forward tcp:0:9876", effect: "opens a local port to port 9876 of the phone")
        return [
            Step(command: "patchbay doctor", effect: "checks network, phones and service"), port,
            Step(command: "patchbay add NAME HOST:PORT", effect: "adds an app at an address that you know"),
        ]
    }

    /// True if the app does not answer, and answered within the last hour.
    private static func isMissed(_ endpoint: Endpoint) -> Bool {
        endpoint.state != .online && endpoint.approval == .approved
            && (endpoint.lastSeenAt.map { $0.timeIntervalSinceNow > -3_600 } ?? false)
    }

    private var stepsOfApps: [Step] {
        let running = endpoints.filter { $0.state == .online }.sorted { $0.id < $1.id }
        var steps: [Step] = []
        if let app = running.first(where: { $0.approval == .pending }) {
            steps.append(Step(command: "patchbay show \(app.id)", effect: "shows its address, before you approve it"))
            steps.append(Step(command: "patchbay approve \(app.id)", effect: "allows connections to this address"))
        }
        if let app = endpoints.filter(Self.isMissed).min(by: { $0.id < $1.id }) {
            steps.append(Step(command: "patchbay show \(app.id)", effect: "shows why the app does not answer"))
        }
        let approved = running.filter { $0.approval == .approved }
        if let app = approved.first(where: { $0.kind == .web || $0.kind == .dartVM || $0.kind == .tcp }) {
            steps.append(Step(command: "patchbay forward -e \(app.id)", effect: "opens a local address of the app"))
        } else if let app = approved.first {
            steps.append(Step(command: "patchbay tools \(app.id)", effect: "lists what an agent can do with the app"))
        }
        return steps + [
            Step(command: "patchbay dashboard", effect: "opens the page of apps, phones and calls"),
            Step(command: "patchbay mcp install claude", effect: "gives the apps to an agent"),
        ]
    }
}

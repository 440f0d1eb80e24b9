import ArgumentParser
import Client
import FoundationEssentials
import Model

struct StatusCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status",
        abstract: "Show broker status: problems with hints, counts and sources.",
        discussion: """
            Lists problems and warnings first, each with a hint. Exits with 1 after a problem.

              patchbay status
              patchbay status --json | jq .sources
            """
    )

    @OptionGroup var options: GlobalOptions
    @OptionGroup var format: JSONOption

    func run() async throws {
        let status = try await options.client.status()
        let output = options.output
        if format.json { return try output.document(status) }
        let problems = [try await configurationProblem(of: status)].compactMap { $0 } + status.problems
        // Only owners may list requests.
        let requests = (try? await options.client.requests()) ?? []
        let devices = (try? await options.client.devices()) ?? []
        // An owner sees the process.
        let isOwner = status.pid != nil
        let endpoints = isOwner ? (try? await options.client.endpoints().endpoints) ?? [] : []
        let text = Self.text(
            status,
            problems: problems,
            requests: requests,
            unusable: devices.filter { !$0.isReady },
            pending: endpoints.filter { $0.state == .online && [.pending, .changed].contains($0.approval) },
            grant: isOwner ? nil : try? await options.client.ownGrant(),
            socket: try options.client.address.description,
            isColoured: output.isColoured
        )
        try output.line(text)
        if problems.contains(where: { $0.severity == .problem }) { throw ExitCode(ExitStatus.error.rawValue) }
    }

    /// Returns the problem of the file with which a broker of this machine runs. Only an owner reads where it is.
    private func configurationProblem(of status: BrokerStatus) async throws -> BrokerProblem? {
        let client = try options.client
        guard case .unix(let socket) = client.address, let entries = try? await client.configuration() else {
            return nil
        }
        let file = entries.compactMap(\.file).first
        return ConfigurationFileCheck.problem(
            await (file.map(ConfigurationFileCheck.init(file:)) ?? ConfigurationFileCheck(ofBrokerAt: socket)).run(),
            isService: BrokerService.isBroker(at: socket),
            pid: status.pid
        )
    }

    /// The maximum number of phones whose problems are listed.
    private static let phoneLimit = 5

    /// `problems` also has that of the configuration file; nil stands for those of the status. `unusable` has the phones
    /// whose apps cannot be reached, which the status does not count. `pending` has the endpoints that run and wait for an
    /// approval. `grant` is nil for an owner.
    static func text(
        _ status: BrokerStatus,
        problems: [BrokerProblem]? = nil,
        requests: [AccessRequest] = [],
        unusable: [Device] = [],
        pending: [Endpoint] = [],
        grant: Grant? = nil,
        socket: String,
        now: Date = Date(),
        isColoured: Bool
    ) -> String {
        let phoneProblems = unusable.compactMap(\.problem).filter { $0.severity != .information }.prefix(phoneLimit)
        var lines = ((problems ?? status.problems).filter { $0.severity != .information } + phoneProblems).flatMap {
            problem in
            let word = problem.severity.style.paint("\(problem.severity.rawValue):", isOn: isColoured)
            return ["\(word) \(problem.subject): \(Console.plain(problem.text))"]
                + ((problem.hint ?? problem.command).map { ["try: \(Console.plain($0))"] } ?? [])
        }
        lines += requests.map { AccessTables.notice($0, isColoured: isColoured) }
        if !lines.isEmpty { lines.append("") }
        let states = status.endpoints.sorted { $0.key < $1.key }.filter { $0.value > 0 }.map { "\($0.value) \($0.key)" }
        let age = Formatting.duration(now.timeIntervalSince(status.startedAt))
        let process = status.pid.map { ", process \($0)" } ?? ""
        lines += [
            "broker     patchbayd \(status.version)\(process), up \(age), at \(Console.plain(socket))",
            "endpoints  \(states.isEmpty ? "none yet" : states.joined(separator: ", ")) (revision \(status.revision))",
            "phones     \(phones(status.devices, unusable: unusable.count, grant))",
            "tunnels    \(status.tunnels == 0 ? "none" : "\(status.tunnels)")",
        ]
        if !pending.isEmpty { lines.append("approvals  \(approvals(pending))") }
        if let grant { lines.append("grant      \(AccessTables.line(grant))") }
        if let streams = status.streams { lines.append("streams    \(streams)") }
        if let remote = status.remote { lines.append("remote     \(remote.summary)") }
        if let host = status.host {
            lines.append("team       \(TeamText.summary(of: host, status.hosts ?? [], now: now))")
        }
        if let leases = status.leases { lines.append("leases     \(leases)") }
        lines += status.sources.map { source in
            let name = source.name.padded(to: 9)
            let state = source.state == .ok && source.fact != nil ? "degraded" : source.state.rawValue
            let style = source.state == .ok && source.fact != nil ? ANSIStyle.yellow : source.state.style
            // What needs nobody now is no line of its own.
            let hint = source.fact?.severity == .information ? source.hint.map { "; \($0)" } ?? "" : ""
            return "\(name)  \(style.paint(state, isOn: isColoured)): \(source.detail)\(hint)"
        }
        return lines.joined(separator: "\n")
    }

    /// Names the endpoints that wait for an approval. Any machine on the network can add some.
    private static func approvals(_ pending: [Endpoint]) -> String {
        let names = pending.map(\.id.text).sorted()
        let more = names.count > phoneLimit ? " and \(names.count - phoneLimit) more" : ""
        return
            "\(names.count) to decide: \(names.prefix(phoneLimit).joined(separator: ", "))\(more); `patchbay show ID`"
    }

    private static func phones(_ ready: Int, unusable: Int, _ grant: Grant?) -> String {
        if ready + unusable == 0, let grant, grant.permissions.selector != .all { return "not shown to this grant" }
        guard unusable > 0 else { return ready == 0 ? "none attached" : "\(ready) attached" }
        return "\(ready) ready, \(unusable) not: see `patchbay devices`"
    }
}

extension BrokerProblem.Severity {
    var style: ANSIStyle {
        switch self {
        case .problem: .red
        case .warning: .yellow
        case .information: .plain
        }
    }
}

extension SourceStatus.State {
    var style: ANSIStyle {
        switch self {
        case .ok: .green
        case .starting, .missing: .yellow
        case .off: .dim
        }
    }
}

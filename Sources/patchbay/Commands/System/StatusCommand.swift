import ArgumentParser
import Client
import FoundationEssentials
import Model

struct StatusCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status",
        abstract: "Show broker status: problems with hints, counts and sources.",
        discussion: """
            Lists problems first, each with a hint.

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
        // Only owners may list requests.
        let requests = (try? await options.client.requests()) ?? []
        let devices = (try? await options.client.devices()) ?? []
        let text = Self.text(
            status,
            requests: requests,
            unusable: devices.filter { !$0.isReady },
            socket: try options.client.address.description,
            isColoured: output.isColoured
        )
        try output.line(text)
    }

    /// The maximum number of phones whose problems are listed.
    private static let phoneLimit = 5

    /// `unusable` has the phones whose apps cannot be reached, which the status does not count.
    static func text(
        _ status: BrokerStatus,
        requests: [AccessRequest] = [],
        unusable: [Device] = [],
        socket: String,
        now: Date = Date(),
        isColoured: Bool
    ) -> String {
        let phoneProblems = unusable.compactMap(\.problem).filter { $0.severity != .information }
        let problems = status.problems + phoneProblems.prefix(phoneLimit)
        var lines = problems.flatMap { problem in
            let style = problem.severity == .problem ? ANSIStyle.red : .yellow
            return ["\(style.paint("problem:", isOn: isColoured)) \(problem.subject): \(Console.plain(problem.text))"]
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
            "phones     \(phones(status.devices, unusable: unusable.count))",
            "tunnels    \(status.tunnels == 0 ? "none" : "\(status.tunnels)")",
        ]
        if let streams = status.streams { lines.append("streams    \(streams)") }
        if let remote = status.remote { lines.append("remote     \(remote.summary)") }
        if let host = status.host {
            lines.append("team       \(TeamText.summary(of: host, status.hosts ?? [], now: now))")
        }
        if let leases = status.leases { lines.append("leases     \(leases)") }
        lines += status.sources.map { source in
            let name = source.name.padded(to: 9)
            return "\(name)  \(source.state.style.paint(source.state.rawValue, isOn: isColoured)): \(source.detail)"
        }
        return lines.joined(separator: "\n")
    }

    private static func phones(_ ready: Int, unusable: Int) -> String {
        guard unusable > 0 else { return ready == 0 ? "none attached" : "\(ready) attached" }
        return "\(ready) ready, \(unusable) not: see `patchbay devices`"
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

import FoundationEssentials
import Model

/// The team as `patchbay team` shows it.
struct TeamStatusText {
    private let status: TeamStatus
    private let now: Date

    /// The step after a change of the team.
    static let restart = "Restart the broker to apply that: systemctl restart patchbayd"

    /// The time before the end of a certificate from which it is shown as a problem: 60 days.
    private static let expiryWarning: TimeInterval = 60 * 86_400

    init(_ status: TeamStatus, now: Date = Date()) {
        self.status = status
        self.now = now
    }

    func show(_ format: JSONOption, on output: Console) throws {
        if format.json { return try output.document(status) }
        for line in lines { try output.line(line) }
        guard !status.hosts.isEmpty else { return }
        try output.line("")
        try output.table(table)
    }

    var lines: [String] {
        guard let team = status.team, let host = status.host else {
            return ["team         none"] + (status.restartNeeded ? [Self.restart] : ["try: patchbay team init NAME"])
        }
        var lines = ["team         \(team)"]
        let isAuthority = status.authority == host
        lines.append("host         \(host)\(isAuthority ? ", with the certificate authority" : "")")
        if !isAuthority, let authority = status.authority { lines.append("authority    \(authority)") }
        if let key = status.key { lines.append("key pin      \(key)") }
        lines += certificate(isAuthority: isAuthority)
        lines += status.etcd.map { server in
            "etcd         \(Console.plain(server.url)) \(server.problem.map { "failed: \(Console.plain($0))" } ?? "answers")"
        }
        if let since = status.staleSince {
            let time = Formatting.duration(now.timeIntervalSince(since))
            lines.append("registry     unreachable for \(time); the hosts may be outdated")
        }
        if let problem = status.problem { lines.append("problem      \(Console.plain(problem))") }
        if let hint = status.hint { lines.append("try: \(Console.plain(hint))") }
        if status.restartNeeded { lines.append(Self.restart) }
        return lines
    }

    private func certificate(isAuthority: Bool) -> [String] {
        guard let end = status.certificateExpiresAt else { return ["certificate  missing"] }
        let line = "certificate  ends \(Formatting.from(now, to: end))"
        guard end < now.addingTimeInterval(Self.expiryWarning) else { return [line] }
        let step =
            isAuthority
            ? "patchbay team init \((status.team?.text ?? "NAME").shellQuoted)"
            : "patchbay team join -, with a new string of patchbay team invite"
        return [line, "renew it: \(step)"]
    }

    var table: Table {
        Table(
            of: status.hosts,
            [
                .init("HOST", style: { _ in .bold }, \.name.text),
                .init("STATE", style: { $0.state == .online ? .green : .yellow }, \.state.rawValue),
                .init("SINCE", .optional) { $0.since.map { Formatting.ago($0, now: now) } ?? "" },
                .init("ADDRESSES", .flexible) { $0.addresses.map(Console.plain).joined(separator: ", ") },
                .init("VERSION", .optional) { $0.version.map(Console.plain) ?? "" },
            ]
        )
    }
}

import Client
import Glibc
import Model

/// Checks that the broker responds, the permissions of its socket, and its sources.
struct BrokerCheck {
    let client: PatchbayClient

    /// Returns the results, the broker's status, and whether a broker listens. The status is nil if the broker does not
    /// respond, or refuses this client.
    func run() async -> (checks: [Check], status: BrokerStatus?, isRunning: Bool) {
        var checks: [Check] = []
        var isRunning = true
        do {
            let status = try await client.status()
            checks.append(Self.version(status))
            let address = client.address.description
            checks += Self.socket(
                address,
                UnixSocketStatus(path: address).access,
                isForAll: status.allowAnyUser == true
            )
            return (checks + Self.parts(of: status), status, true)
        } catch let error as ClientError {
            if case .brokerNotRunning = error { isRunning = false }
            let cause = await BrokerOutage(error, at: client.address)?.explained()
            checks.append(
                .fail("broker", cause?.message ?? error.description, try: cause?.hint ?? Self.hint(for: error))
            )
        } catch {
            checks.append(.fail("broker", "\(error)", try: "patchbay logs -p warning"))
        }
        return (checks, nil, isRunning)
    }

    /// Returns the checks of the parts of a broker.
    static func parts(of status: BrokerStatus) -> [Check] {
        (status.findings ?? []).map(finding) + (status.storage ?? []).map(storage)
            + [status.remote.flatMap { RemoteStatusText($0).check }].compactMap { $0 } + status.sources.map(source)
    }

    /// Returns the hint of the error, without the usual reference to `patchbay doctor`.
    private static func hint(for error: ClientError) -> String? {
        switch error {
        case .brokerNotRunning:
            BrokerSocketPath.serviceUnits.contains { access($0, F_OK) == 0 }
                ? "sudo systemctl start patchbayd" : "patchbayd"
        default: error.hint
        }
    }

    private static func version(_ status: BrokerStatus) -> Check {
        let process = status.pid.map { ", process \($0)" } ?? ""
        let detail = "patchbayd \(status.version) is running\(process)"
        guard status.version != Version.text else { return .ok("broker", detail) }
        return .warn(
            "broker",
            "\(detail), but this is patchbay \(Version.text)",
            try: "sudo systemctl restart patchbayd"
        )
    }

    /// Checks the mode of the socket, because the socket gives access to every phone.
    ///
    /// With `allow_any_user = true` in the configuration, all users may connect; users without owner rights need a grant.
    static func socket(_ path: String, _ access: (mode: UInt32, owner: UInt32)?, isForAll: Bool) -> [Check] {
        guard let access else { return [] }
        let mode = String(access.mode, radix: 8)
        if access.mode & 0o007 != 0, isForAll {
            let detail =
                "\(path), mode 0\(mode), as required by allow_any_user = true; users without owner rights need a grant"
            return [Check.ok("socket", detail)]
        }
        guard access.mode & 0o007 != 0 else {
            return [Check.ok("socket", "\(path), mode 0\(mode), owner \(access.owner)")]
        }
        return [
            Check.fail(
                "socket",
                "\(path) has mode 0\(mode): every user may connect, but allow_any_user is not set",
                try: "sudo chmod 0600 \(path.shellQuoted)"
            )
        ]
    }

    /// Converts a finding of the broker; the text includes the next step.
    static func finding(_ what: String) -> Check { Check(.finding(what)) }

    /// Converts a failed write of the broker, whose message names the file and the reason.
    static func storage(_ what: String) -> Check { Check(.storage(what)) }

    /// Converts the status of a source.
    static func source(_ source: SourceStatus) -> Check {
        source.problem.map(Check.init) ?? .ok(source.name, source.detail)
    }
}

extension Check {
    /// Converts a problem of the broker, with its command. Information needs none.
    init(_ problem: BrokerProblem) {
        let verdict = Verdict(problem.severity)
        let hint = verdict == .ok ? nil : problem.command ?? problem.hint
        self.init(name: problem.subject, verdict: verdict, detail: problem.text, hint: hint)
    }
}

extension Check.Verdict {
    /// The verdict of a fact. Information needs no action.
    init(_ severity: BrokerProblem.Severity) {
        self =
            switch severity {
            case .problem: .fail
            case .warning: .warn
            case .information: .ok
            }
    }
}

import Client
import Model

/// Whether the broker answers, who may use its socket, and how its sources are.
struct BrokerCheck {
    let client: PatchbayClient

    /// The broker's word on its sources comes with the checks; nil where it does not answer.
    func run() async -> (checks: [Check], sources: [SourceStatus]?) {
        var checks: [Check] = []
        do {
            let status = try await client.status()
            checks.append(Self.version(status))
            let address = client.address.description
            checks += Self.socket(address, UnixSocketStatus(path: address).access, isForAll: status.anyUser == true)
            checks += (status.findings ?? []).map(Self.finding)
            checks += (status.storage ?? []).map { Check(name: "state", verdict: .fail, detail: $0) }
            return (checks + status.sources.map(Self.source), status.sources)
        } catch let error as ClientError {
            checks.append(
                Check(name: "broker", verdict: .fail, detail: error.description, remedy: Self.remedy(for: error))
            )
        } catch {
            checks.append(Check(name: "broker", verdict: .fail, detail: "\(error)", remedy: "patchbay status"))
        }
        return (checks, nil)
    }

    /// Not to be sent here again by the one who is here.
    private static func remedy(for error: ClientError) -> String? {
        switch error {
        case .brokerNotRunning: "patchbayd, or systemctl start patchbayd"
        default: error.remedy
        }
    }

    private static func version(_ status: BrokerStatus) -> Check {
        let process = status.pid.map { ", process \($0)" } ?? ""
        let detail = "patchbayd \(status.version) answers\(process)"
        guard status.version != Version.text else { return Check(name: "broker", verdict: .ok, detail: detail) }
        return Check(
            name: "broker",
            verdict: .warn,
            detail: "\(detail), and this is patchbay \(Version.text)",
            remedy: "systemctl restart patchbayd"
        )
    }

    /// The socket is the key to every phone, so its mode matters.
    ///
    /// Where the configuration says `any_user = true`, everybody may connect, and needs a grant for more.
    static func socket(_ path: String, _ access: (mode: UInt32, owner: UInt32)?, isForAll: Bool) -> [Check] {
        guard let access else { return [] }
        let mode = String(access.mode, radix: 8)
        if access.mode & 0o007 != 0, isForAll {
            let detail = "\(path), mode 0\(mode), as any_user = true wants it: who is no owner needs a grant"
            return [Check(name: "socket", verdict: .ok, detail: detail)]
        }
        guard access.mode & 0o007 != 0 else {
            return [Check(name: "socket", verdict: .ok, detail: "\(path), mode 0\(mode), owner \(access.owner)")]
        }
        return [
            Check(
                name: "socket",
                verdict: .fail,
                detail: "\(path) has mode 0\(mode): every user may connect, which the configuration does not want",
                remedy: "chmod 0600 \(path), or any_user = true in the table [api]"
            )
        ]
    }

    /// The finding itself says what to do.
    static func finding(_ what: String) -> Check { Check(name: "access", verdict: .warn, detail: what) }

    static func source(_ source: SourceStatus) -> Check {
        switch source.state {
        // A source that works and has a remedy works in part.
        case .ok where source.remedy == nil: Check(name: source.name, verdict: .ok, detail: source.detail)
        case .off: Check(name: source.name, verdict: .ok, detail: source.detail)
        case .ok, .starting, .missing:
            Check(name: source.name, verdict: .warn, detail: source.detail, remedy: source.remedy)
        }
    }
}

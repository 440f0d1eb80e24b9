import Client
import Glibc
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
            checks += Self.socket(address, SocketFile(path: address).access, user: geteuid())
            checks += (status.findings ?? []).map(Self.finding)
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
        let detail = "patchbayd \(status.version) answers, process \(status.pid)"
        guard status.version != Version.text else { return Check(name: "broker", verdict: .ok, detail: detail) }
        return Check(
            name: "broker",
            verdict: .warn,
            detail: "\(detail), and this is patchbay \(Version.text)",
            remedy: "systemctl restart patchbayd"
        )
    }

    /// The socket is the key to every phone, so its mode matters.
    static func socket(_ path: String, _ access: (mode: UInt32, owner: UInt32)?, user: UInt32) -> [Check] {
        guard let access else { return [] }
        let mode = String(access.mode, radix: 8)
        guard access.mode & 0o007 != 0 else {
            return [Check(name: "socket", verdict: .ok, detail: "\(path), mode 0\(mode), owner \(access.owner)")]
        }
        return [
            Check(
                name: "socket",
                verdict: .fail,
                detail: "\(path) has mode 0\(mode): every user may use your phones",
                remedy: "chmod 0600 \(path)"
            )
        ]
    }

    /// The finding itself says what to do.
    static func finding(_ what: String) -> Check { Check(name: "access", verdict: .warn, detail: what) }

    static func source(_ source: SourceStatus) -> Check {
        switch source.state {
        case .ok: Check(name: source.name, verdict: .ok, detail: source.detail)
        case .off: Check(name: source.name, verdict: .ok, detail: source.detail)
        case .starting, .missing:
            Check(name: source.name, verdict: .warn, detail: source.detail, remedy: source.remedy)
        }
    }
}

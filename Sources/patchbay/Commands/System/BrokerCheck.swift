import Client
import Glibc
import Model
import SystemIO

/// Checks that the broker responds, the permissions of its socket, and its sources.
struct BrokerCheck {
    let client: PatchbayClient

    /// Returns the results and the broker's sources; the sources are nil if the broker does not respond.
    func run() async -> (checks: [Check], sources: [SourceStatus]?) {
        var checks: [Check] = []
        do {
            let status = try await client.status()
            checks.append(Self.version(status))
            let address = client.address.description
            checks += Self.socket(
                address,
                UnixSocketStatus(path: address).access,
                isForAll: status.allowAnyUser == true
            )
            checks += (status.findings ?? []).map(Self.finding)
            checks += (status.storage ?? []).map { Check(name: "state", verdict: .fail, detail: $0) }
            checks += [status.remote.flatMap { RemoteStatusText($0).check }].compactMap { $0 }
            return (checks + status.sources.map(Self.source), status.sources)
        } catch let error as ClientError {
            checks.append(
                Check(name: "broker", verdict: .fail, detail: error.description, hint: Self.hint(for: error))
            )
        } catch {
            checks.append(Check(name: "broker", verdict: .fail, detail: "\(error)", hint: "patchbay status"))
        }
        return (checks, nil)
    }

    /// Returns the hint of the error, without the usual reference to `patchbay doctor`.
    private static func hint(for error: ClientError) -> String? {
        switch error {
        case .brokerNotRunning: "patchbayd, or systemctl start patchbayd"
        default: error.hint
        }
    }

    private static func version(_ status: BrokerStatus) -> Check {
        let process = status.pid.map { ", process \($0)" } ?? ""
        let detail = "patchbayd \(status.version) is running\(process)"
        guard status.version != Version.text else { return Check(name: "broker", verdict: .ok, detail: detail) }
        return Check(
            name: "broker",
            verdict: .warn,
            detail: "\(detail), but this is patchbay \(Version.text)",
            hint: "systemctl restart patchbayd"
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
            return [Check(name: "socket", verdict: .ok, detail: detail)]
        }
        guard access.mode & 0o007 != 0 else {
            return [Check(name: "socket", verdict: .ok, detail: "\(path), mode 0\(mode), owner \(access.owner)")]
        }
        return [
            Check(
                name: "socket",
                verdict: .fail,
                detail: "\(path) has mode 0\(mode): every user may connect, but allow_any_user is not set",
                hint: "chmod 0600 \(path), or set allow_any_user = true in [api]"
            )
        ]
    }

    /// Converts a finding of the broker; the text includes the next step.
    static func finding(_ what: String) -> Check { Check(name: "access", verdict: .warn, detail: what) }

    /// Converts the status of a source.
    static func source(_ source: SourceStatus) -> Check {
        switch source.state {
        // A source that works and has a hint works in part.
        case .ok where source.hint == nil: Check(name: source.name, verdict: .ok, detail: source.detail)
        case .off: Check(name: source.name, verdict: .ok, detail: source.detail)
        case .ok, .starting, .missing:
            Check(name: source.name, verdict: .warn, detail: source.detail, hint: source.hint)
        }
    }
}

/// The state of a Unix socket path, by connect(2) and stat(2).
struct UnixSocketStatus {
    enum State {
        case absent
        case notASocket
        /// The file exists, but no server listens.
        case dead
        case notPermitted
        case listening
    }

    let path: String

    var state: State {
        var facts = stat()
        guard stat(path, &facts) == 0 else { return errno == EACCES ? .notPermitted : .absent }
        guard facts.st_mode & S_IFMT == S_IFSOCK else { return .notASocket }
        switch connectError {
        case 0: return .listening
        // EAGAIN means a full accept queue, so a server listens (unix(7)).
        case EAGAIN: return .listening
        case EACCES, EPERM: return .notPermitted
        case ENOENT: return .absent
        default: return .dead
        }
    }

    /// The permission bits and the owner; nil if the file does not exist.
    var access: (mode: UInt32, owner: UInt32)? {
        var facts = stat()
        return stat(path, &facts) == 0 ? (facts.st_mode & 0o777, facts.st_uid) : nil
    }

    /// The errno of connect(2), or 0.
    private var connectError: CInt {
        let address = SocketAddress.unix(path: path)
        guard let socket = try? address.makeSocket() else { return errno }
        let number = socket.number
        // A path that does not fit cannot be a socket's.
        let code = try? address.withRaw { Glibc.connect(number, $0, $1) == 0 ? 0 : errno }
        return code ?? ENOENT
    }
}

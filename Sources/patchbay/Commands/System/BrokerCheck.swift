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

/// A unix socket in the file system, as connect(2) and stat(2) see it.
struct UnixSocketStatus {
    enum State {
        case absent
        case notASocket
        /// The file is there and nobody listens: its server died.
        case dead
        case notPermitted
        case listening
    }

    let path: String

    var state: State {
        var facts = stat()
        guard stat(path, &facts) == 0 else { return errno == EACCES ? .notPermitted : .absent }
        guard facts.st_mode & S_IFMT == S_IFSOCK else { return .notASocket }
        let flags = CInt(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
        let descriptor = socket(AF_UNIX, flags, 0)
        defer { close(descriptor) }
        if connected(descriptor) { return .listening }
        switch errno {
        // A full accept queue: somebody listens, and is busy (unix(7)).
        case EAGAIN: return .listening
        case EACCES, EPERM: return .notPermitted
        case ENOENT: return .absent
        default: return .dead
        }
    }

    /// The permission bits and the owner; nil when there is no file.
    var access: (mode: UInt32, owner: UInt32)? {
        var facts = stat()
        return stat(path, &facts) == 0 ? (facts.st_mode & 0o777, facts.st_uid) : nil
    }

    private func connected(_ descriptor: CInt) -> Bool {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let fits = withUnsafeMutableBytes(of: &address.sun_path) { room in
            guard path.utf8.count < room.count else { return false }
            room.copyBytes(from: path.utf8)
            return true
        }
        guard fits else {
            errno = ENOENT
            return false
        }
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                connect(descriptor, pointer, socklen_t(MemoryLayout<sockaddr_un>.size)) == 0
            }
        }
    }
}

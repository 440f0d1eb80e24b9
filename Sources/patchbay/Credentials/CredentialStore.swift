import Client
import FoundationEssentials
import Glibc
import Model

/// Where `patchbay join` keeps grants: `$XDG_STATE_HOME/patchbay/grants`, for its user alone.
struct CredentialStore {
    /// What a file there holds.
    struct Entry: Codable {
        /// Where the broker takes calls.
        let broker: String
        let grant: Grant
        /// `pbg_…`: a secret.
        let token: String
    }

    let path: String

    init(environment: [String: String]) throws(CLIError) {
        let told = environment["XDG_STATE_HOME"].flatMap { $0.hasPrefix("/") ? $0 : nil }
        let home = environment["HOME"].flatMap { $0.hasPrefix("/") ? "\($0)/.local/state" : nil }
        guard let folder = told ?? home else {
            throw CLIError(
                status: .configuration,
                message: "there is no place for the grant: neither $XDG_STATE_HOME nor $HOME is an absolute path",
                remedy: "patchbay join --print -"
            )
        }
        path = "\(folder)/patchbay/grants"
    }

    /// Makes sure that a grant can be kept: makes the folders, and refuses one that others could read or change.
    ///
    /// To be called before the invite is spent, which can be done once.
    func prepare() throws(CLIError) {
        let parts = path.split(separator: "/")
        for count in 1...parts.count {
            let folder = "/" + parts[..<count].joined(separator: "/")
            guard mkdir(folder, 0o700) == 0 || errno == EEXIST || access(folder, F_OK) == 0 else {
                throw failure(errno)
            }
        }
        var facts = stat()
        guard lstat(path, &facts) == 0 else { throw failure(errno) }
        guard facts.st_mode & S_IFMT == S_IFDIR, facts.st_uid == geteuid(), facts.st_mode & 0o077 == 0 else {
            throw CLIError(
                status: .configuration,
                message: "\(path) is not a folder of yours alone, so no grant is kept there",
                remedy: "chmod 700 \(path), or remove it"
            )
        }
        guard access(path, W_OK | X_OK) == 0 else { throw failure(errno) }
    }

    /// Writes one, readable for its user alone, whole or not at all.
    ///
    /// - Returns: The file's path.
    func keep(_ entry: Entry) throws(CLIError) -> String {
        let file = "\(path)/\(entry.grant.id).json"
        let draft = "\(path)/.\(entry.grant.id).\(getpid())"
        guard var bytes = try? Array(JSONCoding.encoder().encode(entry)) else { throw failure(EINVAL) }
        bytes.append(UInt8(ascii: "\n"))
        let descriptor = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw failure(errno) }
        let isWritten = BlockingThread.write(bytes, to: descriptor) && fsync(descriptor) == 0
        let reason = errno
        close(descriptor)
        guard isWritten, rename(draft, file) == 0 else {
            let reason = isWritten ? errno : reason
            unlink(draft)
            throw failure(reason)
        }
        return file
    }

    /// The newest grant for this broker that has not ended by its own time.
    ///
    /// - Throws: `CLIError` where there is none, or where others could read it.
    func entry(for broker: BrokerAddress) throws(CLIError) -> Entry {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []
        var found: [Entry] = []
        for name in names where name.hasSuffix(".json") && !name.hasPrefix(".") {
            guard let entry = try read("\(path)/\(name)"), broker.isNamed(entry.broker) else { continue }
            found.append(entry)
        }
        let now = Date()
        if let entry = found.filter({ $0.grant.expires > now }).max(by: { $0.grant.created < $1.grant.created }) {
            return entry
        }
        throw CLIError(
            status: .notPermitted,
            message: found.isEmpty
                ? "no grant for the broker at \(broker) is kept in \(path)"
                : "the grant that is kept for the broker at \(broker) has ended",
            remedy: "patchbay join -, with what `patchbay pair` shows"
        )
    }

    /// Nil for what is none.
    private func read(_ file: String) throws(CLIError) -> Entry? {
        let descriptor = open(file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var facts = stat()
        guard fstat(descriptor, &facts) == 0, facts.st_mode & S_IFMT == S_IFREG else { return nil }
        guard facts.st_uid == geteuid(), facts.st_mode & 0o077 == 0 else {
            throw CLIError(
                status: .configuration,
                message: "\(file) is not yours alone, so its token is not used",
                remedy: "chmod 600 \(file), or, if somebody may have read it, revoke its grant and join again"
            )
        }
        var bytes = [UInt8](repeating: 0, count: Self.sizeLimit)
        let count = Glibc.read(descriptor, &bytes, bytes.count)
        return count > 0 ? try? JSONCoding.decoder().decode(Entry.self, from: Data(bytes[..<count])) : nil
    }

    /// Of a file in it.
    private static let sizeLimit = 64 << 10

    private func failure(_ code: CInt) -> CLIError {
        CLIError(
            status: .configuration,
            message: "the grant cannot be kept in \(path): \(String(cString: strerror(code)))",
            remedy: "patchbay join --print -"
        )
    }
}

extension BrokerAddress {
    /// Whether this is the broker that a file names. Both loopback addresses of a port are one broker's.
    fileprivate func isNamed(_ text: String) -> Bool {
        guard case .loopback(_, let port) = self else { return description == text }
        return ["127.0.0.1", "::1"].contains { BrokerAddress.loopback(host: $0, port: port).description == text }
    }
}

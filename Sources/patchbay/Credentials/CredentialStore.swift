import Client
import FoundationEssentials
import Glibc
import Model
import SystemIO

/// The grants that `patchbay join` stored in `$XDG_STATE_HOME/patchbay/grants`, readable only by their user.
struct CredentialStore {
    /// The content of one file.
    struct Credential: Codable {
        /// The broker's address.
        let broker: String
        let grant: Grant
        /// `pbg_…`: a secret.
        let token: String
    }

    let path: String

    init(environment: [String: String]) throws(CLIError) {
        let state = environment["XDG_STATE_HOME"].flatMap { $0.hasPrefix("/") ? $0 : nil }
        let home = environment["HOME"].flatMap { $0.hasPrefix("/") ? "\($0)/.local/state" : nil }
        guard let folder = state ?? home else {
            throw CLIError(
                status: .configuration,
                message: "the grant cannot be stored: neither $XDG_STATE_HOME nor $HOME is an absolute path",
                hint: "patchbay join --print -"
            )
        }
        path = "\(folder)/patchbay/grants"
    }

    /// Creates the folders and checks that only this user can read and write them.
    ///
    /// Must be called before the invite is redeemed, because an invite can be redeemed only once.
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
                message: "\(path) must be a folder that only you can access; no grant is stored there",
                hint: "chmod 700 \(path), or remove it"
            )
        }
        guard access(path, W_OK | X_OK) == 0 else { throw failure(errno) }
    }

    /// Writes a credential atomically to a file with mode 0600.
    ///
    /// - Returns: The file's path.
    func save(_ credential: Credential) throws(CLIError) -> String {
        let file = "\(path)/\(credential.grant.id).json"
        guard var content = try? JSONCoding.encoder().encode(credential) else { throw failure(EINVAL) }
        content.append(UInt8(ascii: "\n"))
        do { try AtomicFile.replace(file, with: content) } catch { throw failure(because: error.reason) }
        return file
    }

    /// Returns the newest unexpired credential for a broker.
    ///
    /// - Throws: `CLIError` if there is none, or if other users can read its file.
    func credential(for broker: BrokerAddress) throws(CLIError) -> Credential {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []
        var found: [Credential] = []
        for name in names where name.hasSuffix(".json") && !name.hasPrefix(".") {
            guard let credential = try read("\(path)/\(name)"), broker.isNamed(credential.broker) else { continue }
            found.append(credential)
        }
        let now = Date()
        if let credential = found.filter({ $0.grant.expiresAt > now }).max(by: {
            $0.grant.createdAt < $1.grant.createdAt
        }) {
            return credential
        }
        throw CLIError(
            status: .notPermitted,
            message: found.isEmpty
                ? "no grant for the broker at \(broker) is stored in \(path)"
                : "the stored grant for the broker at \(broker) has expired",
            hint: "patchbay join -, with the pairing string of `patchbay pair`"
        )
    }

    /// Reads a credential; nil for any other file.
    private func read(_ file: String) throws(CLIError) -> Credential? {
        let descriptor = open(file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var facts = stat()
        guard fstat(descriptor, &facts) == 0, facts.st_mode & S_IFMT == S_IFREG else { return nil }
        guard facts.st_uid == geteuid(), facts.st_mode & 0o077 == 0 else {
            throw CLIError(
                status: .configuration,
                message: "\(file) is accessible to other users; its token is not used",
                hint: "chmod 600 \(file); if another user may have read the file, revoke its grant and join again"
            )
        }
        var bytes = [UInt8](repeating: 0, count: Self.sizeLimit)
        let count = Glibc.read(descriptor, &bytes, bytes.count)
        return count > 0 ? try? JSONCoding.decoder().decode(Credential.self, from: Data(bytes[..<count])) : nil
    }

    /// The maximum size of a file, in bytes.
    private static let sizeLimit = 64 << 10

    private func failure(_ code: CInt) -> CLIError { failure(because: SocketError.message(for: code)) }

    private func failure(because reason: String) -> CLIError {
        CLIError(
            status: .configuration,
            message: "the grant cannot be stored in \(path): \(reason)",
            hint: "patchbay join --print -"
        )
    }
}

extension BrokerAddress {
    /// Returns true if a stored address means this broker. 127.0.0.1 and ::1 with the same port are one broker.
    fileprivate func isNamed(_ text: String) -> Bool {
        guard case .loopback(_, let port) = self else { return description == text }
        return ["127.0.0.1", "::1"].contains { BrokerAddress.loopback(host: $0, port: port).description == text }
    }
}

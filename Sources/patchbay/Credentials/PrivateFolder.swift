import FoundationEssentials
import Glibc
import Model
import SystemIO

/// A folder below `$XDG_STATE_HOME/patchbay` for secrets: only its user can read and write it.
struct PrivateFolder {
    let path: String
    /// The next step when nothing can be stored.
    private let hint: String

    /// The maximum size of a file, in bytes.
    private static let sizeLimit = 64 << 10

    /// - Parameters:
    ///   - name: The name of the folder.
    ///   - environment: The environment of the process.
    ///   - hint: The next step when nothing can be stored.
    /// - Throws: `CLIError` without a state folder.
    init(_ name: String, environment: [String: String], hint: String) throws(CLIError) {
        let state = environment["XDG_STATE_HOME"].flatMap { $0.hasPrefix("/") ? $0 : nil }
        let home = environment["HOME"].flatMap { $0.hasPrefix("/") ? "\($0)/.local/state" : nil }
        guard let folder = state ?? home else {
            throw CLIError.configuration(
                "the grant cannot be stored: neither $XDG_STATE_HOME nor $HOME is an absolute path",
                try: hint
            )
        }
        path = "\(folder)/patchbay/\(name)"
        self.hint = hint
    }

    /// The names of the files, sorted.
    var names: [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []).filter { !$0.hasPrefix(".") }.sorted()
    }

    /// Creates the folder and checks that only this user can read and write it.
    func prepare() throws(CLIError) {
        let parts = path.split(separator: "/")
        for count in 1...parts.count {
            let folder = "/" + parts[..<count].joined(separator: "/")
            guard mkdir(folder, 0o700) == 0 || errno == EEXIST || access(folder, F_OK) == 0 else {
                throw failure(SocketError.message(for: errno))
            }
        }
        guard let status = FileStatus(atPath: path, followsLinks: false) else {
            throw failure(SocketError.message(for: errno))
        }
        guard status.type == .folder, status.owner == geteuid(), status.isPrivate else {
            throw CLIError.configuration(
                "\(path) must be a folder that only you can access; no grant is stored there",
                try: "chmod 700 \(path.shellQuoted), or remove it"
            )
        }
        guard access(path, W_OK | X_OK) == 0 else { throw failure(SocketError.message(for: errno)) }
    }

    /// Runs the body while no other process does so with this folder. Waits for the other process.
    func locked<Value>(_ body: () async throws -> Value) async throws -> Value {
        let path = path
        // flock(2) of the folder itself, so no lock file remains.
        let descriptor = await BlockingThread.value {
            let number = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
            guard number >= 0 else { return -errno }
            while flock(number, LOCK_EX) != 0, errno == EINTR {}
            return number
        }
        guard descriptor >= 0 else { throw failure(SocketError.message(for: -descriptor)) }
        defer { close(descriptor) }
        return try await body()
    }

    /// Writes a document atomically to a file with mode 0600.
    ///
    /// - Returns: The file's path.
    @discardableResult
    func write(_ document: some Encodable, to name: String) throws(CLIError) -> String {
        let file = "\(path)/\(name)"
        guard var content = try? JSONCoding.encoder().encode(document) else {
            throw failure(SocketError.message(for: EINVAL))
        }
        content.append(UInt8(ascii: "\n"))
        do { try AtomicFile.replace(file, with: content) } catch { throw failure(error.reason) }
        return file
    }

    /// Reads a document; nil for any other file, and for a missing one.
    ///
    /// - Throws: `CLIError` if other users can read the file.
    func read<Document: Decodable>(_ type: Document.Type, from name: String) throws(CLIError) -> Document? {
        let file = "\(path)/\(name)"
        guard FileStatus(atPath: file, followsLinks: false)?.type == .regular else { return nil }
        do throws(ReadFailure) {
            let text = try PrivateFile<ReadFailure>.read(file, limit: Self.sizeLimit)
            return text.flatMap { try? JSONCoding.decoder().decode(type, from: Data($0.utf8)) }
        } catch .exposed {
            throw CLIError.configuration(
                "\(file) is accessible to other users; its token is not used",
                try: "chmod 600 \(file.shellQuoted); if another user may have read the file, revoke its grant and "
                    + "join again"
            )
        } catch {
            return nil
        }
    }

    private enum ReadFailure: PrivateFileError {
        case exposed(path: String, what: String)
        case notRead(path: String, reason: String)
        case notSaved(path: String, reason: String)

        static let remedyForOpenFile = "chmod 600 it"
    }

    /// Deletes a file, if there is one.
    func delete(_ name: String) { unlink("\(path)/\(name)") }

    private func failure(_ reason: String) -> CLIError {
        CLIError.configuration("the grant cannot be stored in \(path): \(reason)", try: hint)
    }
}

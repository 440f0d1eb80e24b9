import FoundationEssentials
import Glibc

/// The error of a module about its private files.
package protocol PrivateFileError: Error {
    /// Other users can read or replace the file or folder.
    static func exposed(path: String, what: String) -> Self
    static func notRead(path: String, reason: String) -> Self
    static func notSaved(path: String, reason: String) -> Self

    /// The next step for a file that other users can open.
    static var remedyForOpenFile: String { get }
}

/// Files that only this user can read and write, in a folder that only this user can write.
package enum PrivateFile<Failure: PrivateFileError> {
    /// Checks a folder.
    ///
    /// - Throws: `exposed` unless this user owns the folder and is the only one with write access.
    package static func check(folder path: String) throws(Failure) {
        guard let status = try status(of: path) else {
            throw .exposed(path: path, what: "does not exist; create it, owned by you and with mode 0700")
        }
        guard status.type == .folder else { throw .exposed(path: path, what: "is not a folder") }
        try checkOwner(status, path)
        guard status.mode & 0o022 == 0 else {
            throw .exposed(path: path, what: "can be written by others (mode \(status.modeText)); chmod 700 it")
        }
    }

    /// Checks a file.
    ///
    /// - Returns: True if the file exists.
    /// - Throws: `exposed` unless the file is a regular file of this user that no other user can open.
    @discardableResult
    package static func check(file path: String) throws(Failure) -> Bool {
        guard let status = try status(of: path) else { return false }
        guard status.type == .regular, status.links == 1 else {
            throw .exposed(path: path, what: "is not a regular file with one link; find out which user created it")
        }
        try checkAccess(status, path)
        return true
    }

    /// Reads at most `limit` bytes of a file as text; nil if there is no file.
    ///
    /// - Throws: `exposed` if another user may have read or replaced the file; `notRead`.
    package static func read(_ path: String, limit: Int = 16 << 10) throws(Failure) -> String? {
        let number = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        if number < 0, errno == ENOENT { return nil }
        guard number >= 0 else {
            if errno == ELOOP { throw .exposed(path: path, what: "is a link; put the file itself there") }
            throw .notRead(path: path, reason: SocketError.message(for: errno))
        }
        let file = Descriptor(owning: number)
        guard let status = FileStatus(of: file.number) else {
            throw .notRead(path: path, reason: SocketError.message(for: errno))
        }
        guard status.type == .regular else { throw .exposed(path: path, what: "is not a regular file; remove it") }
        try checkAccess(status, path)
        var bytes = [UInt8](repeating: 0, count: limit)
        let count = Glibc.read(file.number, &bytes, bytes.count)
        guard count >= 0 else { throw .notRead(path: path, reason: SocketError.message(for: errno)) }
        return String(decoding: bytes[..<count], as: UTF8.self)
    }

    /// Creates an empty file with mode 0600.
    ///
    /// - Throws: `notSaved`.
    package static func create(_ path: String) throws(Failure) {
        try saving(path) { () throws(SocketError) in _ = try Descriptor(creating: path) }
    }

    /// Replaces a file. After a crash, it has the old or the new content.
    ///
    /// - Throws: `notSaved`.
    package static func write(_ path: String, _ content: some Sequence<UInt8>) throws(Failure) {
        try saving(path) { () throws(SocketError) in try AtomicFile.replace(path, with: Data(content)) }
    }

    /// Syncs the folder of a file with fsync(2), because a file's name is stored in its folder.
    ///
    /// - Throws: `notSaved`.
    package static func sync(folderOf path: String) throws(Failure) {
        try saving(path) { () throws(SocketError) in try AtomicFile.syncFolder(of: path) }
    }

    private static func saving(_ path: String, _ body: () throws(SocketError) -> Void) throws(Failure) {
        do { try body() } catch { throw .notSaved(path: path, reason: error.reason) }
    }

    /// Returns the status of the file itself, without following links; nil when there is no file.
    private static func status(of path: String) throws(Failure) -> FileStatus? {
        if let status = FileStatus(atPath: path, followsLinks: false) { return status }
        if errno == ENOENT { return nil }
        throw .exposed(path: path, what: "cannot be checked: \(SocketError.message(for: errno))")
    }

    private static func checkAccess(_ status: FileStatus, _ path: String) throws(Failure) {
        try checkOwner(status, path)
        guard status.isPrivate else {
            let what = "can be opened by others (mode \(status.modeText)); \(Failure.remedyForOpenFile)"
            throw .exposed(path: path, what: what)
        }
    }

    private static func checkOwner(_ status: FileStatus, _ path: String) throws(Failure) {
        guard status.owner == geteuid() else {
            let what = "belongs to user \(status.owner), and this program runs as \(geteuid()); chown it"
            throw .exposed(path: path, what: what)
        }
    }
}

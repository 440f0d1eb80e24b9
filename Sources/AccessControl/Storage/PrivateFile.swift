import FoundationEssentials
import Glibc
import SystemIO

/// Files that only this user can read and write, in a folder that only this user can write.
enum PrivateFile {
    /// Checks a folder.
    ///
    /// - Throws: `AccessError.exposed` unless this user owns the folder and is the only one with write access.
    static func check(folder path: String) throws(AccessError) {
        let status = try status(of: path)
        guard let status else {
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
    /// - Throws: `AccessError.exposed` unless the file is a regular file of this user that no other user can open.
    @discardableResult
    static func check(file path: String) throws(AccessError) -> Bool {
        guard let status = try status(of: path) else { return false }
        guard status.type == .regular, status.links == 1 else {
            throw .exposed(path: path, what: "is not a regular file with one link; find out which user created it")
        }
        try checkOwner(status, path)
        guard status.isPrivate else {
            throw .exposed(
                path: path,
                what:
                    "can be opened by others (mode \(status.modeText)); chmod 600 it, and pair all clients again if it was opened"
            )
        }
        return true
    }

    /// Creates an empty file.
    static func make(_ path: String) throws(AccessError) {
        let number = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard number >= 0 else { throw .notSaved(path: path, reason: SocketError.message(for: errno)) }
        close(number)
    }

    /// Creates a file with this content. After a crash the file is complete or missing.
    static func make(_ path: String, content: Data) throws(AccessError) {
        do { try AtomicFile.replace(path, with: content) } catch {
            throw .notSaved(path: path, reason: error.reason)
        }
    }

    /// Syncs the folder of a file with fsync(2), because a file's name is stored in its folder.
    static func sync(folderOf path: String) throws(AccessError) {
        do { try AtomicFile.syncFolder(of: path) } catch {
            throw .notSaved(path: path, reason: error.reason)
        }
    }

    /// Renames a file to `name.damaged`, `name.damaged-2` and so on, and returns the new name.
    static func setAside(_ path: String, companions: [String]) -> String {
        var aside = "\(path).damaged"
        var number = 2
        while access(aside, F_OK) == 0 {
            aside = "\(path).damaged-\(number)"
            number += 1
        }
        for suffix in [""] + companions { rename(path + suffix, aside + suffix) }
        return aside
    }

    /// Returns the status of the file itself, without following links; nil when there is no file.
    private static func status(of path: String) throws(AccessError) -> FileStatus? {
        if let status = FileStatus(atPath: path, followsLinks: false) { return status }
        if errno == ENOENT { return nil }
        throw .exposed(path: path, what: "cannot be checked: \(SocketError.message(for: errno))")
    }

    private static func checkOwner(_ status: FileStatus, _ path: String) throws(AccessError) {
        guard status.owner == geteuid() else {
            throw .exposed(path: path, what: "belongs to user \(status.owner), and the broker runs as \(geteuid())")
        }
    }
}

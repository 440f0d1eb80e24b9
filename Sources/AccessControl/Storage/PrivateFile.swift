import FoundationEssentials
import Glibc
import SystemIO

/// Files that nobody else may read or write, in a folder that nobody else may write.
enum PrivateFile {
    /// - Throws: `AccessError.exposed` unless the folder is ours and only ours to write.
    static func check(folder path: String) throws(AccessError) {
        let status = try status(of: path)
        guard let status else {
            throw .exposed(path: path, what: "is not there; make it, owned by you and with mode 0700")
        }
        guard status.st_mode & S_IFMT == S_IFDIR else { throw .exposed(path: path, what: "is not a folder") }
        try checkOwner(status, path)
        guard status.st_mode & 0o022 == 0 else {
            throw .exposed(path: path, what: "can be written by others (mode \(mode(status))); chmod 700 it")
        }
    }

    /// - Returns: Whether there is such a file.
    /// - Throws: `AccessError.exposed` when it is not a plain file of ours that nobody else can open.
    @discardableResult
    static func check(file path: String) throws(AccessError) -> Bool {
        guard let status = try status(of: path) else { return false }
        guard status.st_mode & S_IFMT == S_IFREG, status.st_nlink == 1 else {
            throw .exposed(path: path, what: "is not a plain file with one name; look at who put it there")
        }
        try checkOwner(status, path)
        guard status.st_mode & 0o077 == 0 else {
            throw .exposed(
                path: path,
                what:
                    "can be opened by others (mode \(mode(status))); if nobody did, chmod 600 it, else pair everybody anew"
            )
        }
        return true
    }

    /// Makes an empty one.
    static func make(_ path: String) throws(AccessError) {
        let number = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard number >= 0 else { throw .notSaved(path: path, reason: SocketError.words(for: errno)) }
        close(number)
    }

    /// Makes one with this content; after a crash it is there whole or not at all.
    static func make(_ path: String, content: Data) throws(AccessError) {
        let fresh = "\(path).new"
        unlink(fresh)
        try make(fresh)
        let number = open(fresh, O_WRONLY | O_NOFOLLOW | O_CLOEXEC)
        guard number >= 0 else { throw .notSaved(path: path, reason: SocketError.words(for: errno)) }
        let file = Descriptor(owning: number)
        let count = content.withUnsafeBytes { write(file.number, $0.baseAddress, $0.count) }
        guard count == content.count, fsync(file.number) == 0, rename(fresh, path) == 0 else {
            throw .notSaved(path: path, reason: SocketError.words(for: errno))
        }
        try sync(folderOf: path)
    }

    /// A file's name is in its folder's data.
    static func sync(folderOf path: String) throws(AccessError) {
        let folder = path.split(separator: "/").dropLast().reduce("") { "\($0)/\($1)" }
        let number = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard number >= 0 else { throw .notSaved(path: folder, reason: SocketError.words(for: errno)) }
        let descriptor = Descriptor(owning: number)
        guard fsync(descriptor.number) == 0 else {
            throw .notSaved(path: folder, reason: SocketError.words(for: errno))
        }
    }

    /// Moves a file out of the way, keeping it: `name.damaged`, `name.damaged-2`…
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

    /// Of the thing itself, never of what a link leads to; nil when there is nothing.
    private static func status(of path: String) throws(AccessError) -> stat? {
        var status = stat()
        if lstat(path, &status) == 0 { return status }
        if errno == ENOENT { return nil }
        throw .exposed(path: path, what: "cannot be looked at: \(SocketError.words(for: errno))")
    }

    private static func checkOwner(_ status: stat, _ path: String) throws(AccessError) {
        guard status.st_uid == geteuid() else {
            throw .exposed(path: path, what: "belongs to user \(status.st_uid), and the broker runs as \(geteuid())")
        }
    }

    private static func mode(_ status: stat) -> String { "0" + String(status.st_mode & 0o7777, radix: 8) }
}

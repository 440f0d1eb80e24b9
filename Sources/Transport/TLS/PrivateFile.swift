import FoundationEssentials
import Glibc
import SystemIO

/// Reads and writes files that have secrets. Only this user may have access to them.
enum PrivateFile {
    /// The maximum size of a file, in bytes. A file of Patchbay has less than 4 KiB.
    private static let sizeLimit = 16 << 10

    /// Reads a file of at most 16 KiB; nil if there is no file.
    ///
    /// - Throws: `TLSError`, also if another user may have read or replaced the file.
    static func read(_ path: String) throws(TLSError) -> String? {
        let number = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        if number < 0, errno == ENOENT { return nil }
        guard number >= 0 else {
            if errno == ELOOP { throw .exposed(path: path, what: "is a link; put the file itself there") }
            throw .notRead(path: path, reason: SocketError.message(for: errno))
        }
        let descriptor = Descriptor(owning: number)
        try check(descriptor.number, path)
        var bytes = [UInt8](repeating: 0, count: sizeLimit)
        let count = Glibc.read(descriptor.number, &bytes, bytes.count)
        guard count >= 0 else { throw .notRead(path: path, reason: SocketError.message(for: errno)) }
        return String(decoding: bytes[..<count], as: UTF8.self)
    }

    /// Replaces a file. After a crash, it has the old or the new content.
    ///
    /// - Throws: `TLSError.notSaved`.
    static func write(_ path: String, _ text: String) throws(TLSError) {
        do { try AtomicFile.replace(path, with: Data(text.utf8)) } catch {
            throw .notSaved(path: path, reason: error.reason)
        }
    }

    private static func check(_ descriptor: CInt, _ path: String) throws(TLSError) {
        guard let status = FileStatus(of: descriptor) else {
            throw .notRead(path: path, reason: SocketError.message(for: errno))
        }
        guard status.type == .regular else {
            throw .exposed(path: path, what: "is not a regular file; remove it")
        }
        guard status.owner == geteuid() else {
            throw .exposed(
                path: path,
                what: "belongs to user \(status.owner), and this program runs as \(geteuid()); chown it"
            )
        }
        guard status.isPrivate else {
            throw .exposed(
                path: path,
                what: "can be opened by others (mode \(status.modeText)); "
                    + "chmod 600 it, or delete it and pair all clients again if another user has read it"
            )
        }
    }
}

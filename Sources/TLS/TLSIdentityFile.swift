import FoundationEssentials
import Glibc
import SystemIO

/// A key file: a `TLSIdentity` as PEM, with mode 0600.
///
/// The folder must exist, and only this user may write to it.
package struct TLSIdentityFile: Sendable {
    package let path: String

    /// The maximum size of a file, in bytes. A file of Patchbay has less than 1 KiB.
    private static let sizeLimit = 16 << 10

    package init(_ path: String) { self.path = path }

    /// Loads the identity, or creates the file with a new one. After a crash the file is complete or missing.
    ///
    /// An existing file is never replaced, because the peers have pinned its key.
    /// - Throws: `TLSError`.
    package func loadOrCreate() throws -> TLSIdentity {
        if let identity = try load() { return identity }
        let identity = try TLSIdentity()
        do { try AtomicFile.replace(path, with: Data(identity.pem.utf8)) } catch {
            throw TLSError.notSaved(path: path, reason: error.reason)
        }
        return identity
    }

    /// Loads the identity; nil if there is no file.
    ///
    /// - Throws: `TLSError`, also if another user may have read or replaced the file.
    package func load() throws -> TLSIdentity? {
        let number = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        if number < 0, errno == ENOENT { return nil }
        guard number >= 0 else {
            if errno == ELOOP { throw TLSError.exposed(path: path, what: "is a link; put the file itself there") }
            throw TLSError.notRead(path: path, reason: SocketError.message(for: errno))
        }
        let descriptor = Descriptor(owning: number)
        try check(descriptor.number)
        var bytes = [UInt8](repeating: 0, count: Self.sizeLimit)
        let count = read(descriptor.number, &bytes, bytes.count)
        guard count >= 0 else { throw TLSError.notRead(path: path, reason: SocketError.message(for: errno)) }
        do {
            return try TLSIdentity(pem: String(decoding: bytes[..<count], as: UTF8.self))
        } catch {
            throw TLSError.damaged(path: path, reason: "\(error)")
        }
    }

    private func check(_ descriptor: CInt) throws {
        guard let status = FileStatus(of: descriptor) else {
            throw TLSError.notRead(path: path, reason: SocketError.message(for: errno))
        }
        guard status.type == .regular else {
            throw TLSError.exposed(path: path, what: "is not a regular file; remove it")
        }
        guard status.owner == geteuid() else {
            throw TLSError.exposed(
                path: path,
                what: "belongs to user \(status.owner), and this program runs as \(geteuid()); chown it"
            )
        }
        guard status.isPrivate else {
            throw TLSError.exposed(
                path: path,
                what: "can be opened by others (mode \(status.modeText)); "
                    + "chmod 600 it, or delete it and pair all clients again if another user has read it"
            )
        }
    }
}

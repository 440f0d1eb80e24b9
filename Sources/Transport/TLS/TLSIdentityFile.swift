import SystemIO

/// A key file: a `TLSIdentity` as PEM, with mode 0600.
///
/// The folder must exist, and only this user may write to it.
package struct TLSIdentityFile: Sendable {
    package let path: String

    package init(_ path: String) { self.path = path }

    /// Loads the identity, or creates the file with a new one. After a crash the file is complete or missing.
    ///
    /// An existing file is never replaced, because the peers have pinned its key.
    /// - Throws: `TLSError`.
    package func loadOrCreate() throws -> TLSIdentity {
        if let identity = try load() { return identity }
        let identity = try TLSIdentity()
        try PrivateFile.write(path, identity.pem.utf8)
        return identity
    }

    /// Loads the identity; nil if there is no file.
    ///
    /// - Throws: `TLSError`, also if another user may have read or replaced the file.
    package func load() throws -> TLSIdentity? {
        guard let pem = try PrivateFile.read(path) else { return nil }
        do { return try TLSIdentity(pem: pem) } catch {
            throw TLSError.damaged(path: path, reason: "\(error)")
        }
    }
}

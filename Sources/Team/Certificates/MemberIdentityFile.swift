import SwiftASN1
import SystemIO
package import Transport

/// The files of keys and certificates.
typealias PrivateFile = SystemIO.PrivateFile<TLSError>

/// The file `host.pem` in the team's folder, with mode 0600: the key of the host, and its certificate after the join.
package struct MemberIdentityFile: Sendable {
    package let path: String
    /// The certificate of the team's authority.
    package let authorityPath: String

    package init(in folder: String) {
        path = "\(folder)/host.pem"
        authorityPath = CertificateAuthorityFiles(in: folder).certificatePath
    }

    /// Loads the identity; nil before the host has joined a team.
    ///
    /// - Throws: `TLSError`, also if another user may have read or replaced a file.
    package func load() throws(TLSError) -> MemberIdentity? {
        guard let parts = try parts(), let certificate = parts.certificate,
            let authority = try PrivateFile.read(authorityPath)
        else { return nil }
        do { return try MemberIdentity(key: parts.key, certificate: certificate, authority: authority) } catch {
            throw .damaged(path: path, reason: error.description)
        }
    }

    /// Loads the certificate of the team's authority, as PEM; nil before the host has joined a team.
    ///
    /// - Throws: `TLSError`.
    package func authority() throws(TLSError) -> String? { try PrivateFile.read(authorityPath) }

    /// Loads the key, or creates the file with a new one.
    ///
    /// The key is kept until the host leaves its team, or is removed. So a join with a lost response can be repeated.
    ///
    /// - Throws: `TLSError`.
    package func loadOrCreateKey() throws(TLSError) -> CertificateKey {
        if let parts = try parts() { return parts.key }
        return try createKey()
    }

    /// Creates the file with a new key and no certificate. Replaces an earlier key, which was removed from the team.
    ///
    /// - Throws: `TLSError.notSaved`.
    package func createKey() throws(TLSError) -> CertificateKey {
        let key = try CertificateKey()
        try PrivateFile.write(path, key.pem.utf8)
        return key
    }

    /// Saves the certificates of the host and of the authority.
    ///
    /// - Throws: `TLSError.notSaved`.
    package func save(_ identity: MemberIdentity) throws(TLSError) {
        try PrivateFile.write(authorityPath, identity.authorityPEM.utf8)
        try PrivateFile.write(path, (identity.keyPEM + identity.certificatePEM).utf8)
    }

    private func parts() throws(TLSError) -> (key: CertificateKey, certificate: String?)? {
        guard let text = try PrivateFile.read(path) else { return nil }
        do {
            let documents = try PEMDocument.parseMultiple(pemString: text)
            let names = documents.map(\.discriminator)
            guard names == ["PRIVATE KEY"] || names == ["PRIVATE KEY", "CERTIFICATE"] else { throw IdentityMismatch() }
            let certificate = documents.count > 1 ? documents[1].pemString + "\n" : nil
            return (try CertificateKey(pem: documents[0].pemString), certificate)
        } catch {
            throw .damaged(path: path, reason: "\(error)")
        }
    }
}

import Glibc
import NIOSSL
import SwiftASN1
import SystemIO
package import Transport

/// A certificate for clients of etcd with its key, both as PEM.
package struct EtcdClientCertificate: Hashable, Sendable {
    /// The certificate, with the certificates of intermediate authorities behind it.
    package let certificate: String
    /// A secret.
    package let key: String

    /// Checks that both can be read, and that the key is for the certificate.
    ///
    /// - Throws: `TLSError.notAccepted`.
    package init(certificate: String, key: String) throws(TLSError) {
        do {
            var configuration = TLSConfiguration.makeClientConfiguration()
            let chain = try NIOSSLCertificate.fromPEMBytes(Array(certificate.utf8))
            guard !chain.isEmpty else { throw TLSError.notAccepted(reason: "there is no certificate as PEM") }
            configuration.certificateChain = chain.map { .certificate($0) }
            configuration.privateKey = .privateKey(try NIOSSLPrivateKey(bytes: Array(key.utf8), format: .pem))
            // Else the context needs the authorities of the system, and a machine without `ca-certificates` has none.
            configuration.trustRoots = .certificates([])
            _ = try NIOSSLContext(configuration: configuration)
        } catch let error as TLSError {
            throw error
        } catch {
            throw .notAccepted(reason: "the certificate of etcd's administrator and its key cannot be used (\(error))")
        }
        self.certificate = certificate
        self.key = key
    }
}

/// The files for etcd in the team's folder, with mode 0600: `root.pem` (on the authority only) and `etcd-ca.pem`.
package struct EtcdFiles: Sendable {
    /// The key and the certificate of etcd's administrator. `etcdctl` can use it as `--key` and as `--cert`.
    package let administratorPath: String
    /// The authorities of the etcd servers. Missing if that is the authority of the team.
    package let authorityPath: String

    package init(in folder: String) {
        administratorPath = "\(folder)/root.pem"
        authorityPath = "\(folder)/etcd-ca.pem"
    }

    /// Loads the certificate of etcd's administrator; nil if there is none.
    ///
    /// - Throws: `TLSError`, also if another user may have read or replaced the file.
    package func administrator() throws(TLSError) -> EtcdClientCertificate? {
        guard let text = try PrivateFile.read(administratorPath) else { return nil }
        do {
            let documents = try PEMDocument.parseMultiple(pemString: text)
            let keys = documents.filter { $0.discriminator.hasSuffix("PRIVATE KEY") }
            let certificates = documents.filter { $0.discriminator == "CERTIFICATE" }
            return try EtcdClientCertificate(
                certificate: certificates.map { $0.pemString + "\n" }.joined(),
                key: keys.map { $0.pemString + "\n" }.joined()
            )
        } catch {
            throw .damaged(path: administratorPath, reason: "\(error)")
        }
    }

    /// - Throws: `TLSError.notSaved`.
    package func save(_ administrator: EtcdClientCertificate) throws(TLSError) {
        try PrivateFile.write(administratorPath, (administrator.key + administrator.certificate).utf8)
    }

    /// Loads the authorities of the etcd servers, as PEM; nil if that is the authority of the team.
    ///
    /// - Throws: `TLSError`.
    package func authority() throws(TLSError) -> String? { try PrivateFile.read(authorityPath) }

    /// - Throws: `TLSError.notAccepted` if the text has no certificate; `TLSError.notSaved`.
    package func saveAuthority(_ pem: String) throws(TLSError) {
        guard let certificates = try? NIOSSLCertificate.fromPEMBytes(Array(pem.utf8)), !certificates.isEmpty else {
            throw .notAccepted(reason: "the authority of the etcd servers is no certificate as PEM")
        }
        try PrivateFile.write(authorityPath, pem.utf8)
    }

    /// Deletes the authorities of the etcd servers. The authority of the team then counts.
    ///
    /// - Throws: `TLSError.notSaved`.
    package func deleteAuthority() throws(TLSError) {
        guard unlink(authorityPath) != 0, errno != ENOENT else { return }
        throw .notSaved(path: authorityPath, reason: SocketError.message(for: errno))
    }
}

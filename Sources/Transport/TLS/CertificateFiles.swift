import FoundationEssentials
import Glibc
import Model
import NIOSSL
import SwiftASN1
import SystemIO
import X509

/// The files of a certificate of the owner's own, such as those of an ACME client or of `tailscale cert`.
package struct CertificateFiles: Hashable, Sendable {
    /// The certificate, and the chain to its authority, as PEM.
    package let certificate: String
    package let key: String

    /// Nil unless there are both paths.
    package init?(_ certificate: String?, _ key: String?) {
        guard let certificate, let key else { return nil }
        (self.certificate, self.key) = (certificate, key)
    }

    /// Returns the lack of one of the two paths, as a continuation of the name of the other; nil if there is none.
    package static func lack(_ certificate: String?, _ key: String?) -> String? {
        (certificate == nil) == (key == nil) ? nil : "needs both files; set api.remote_certificate and api.remote_key"
    }

    /// The maximum size of a file.
    private static let limit = 256 << 10

    /// The facts that change when a program replaces or writes a file.
    struct Version: Equatable, Sendable {
        let states: [[Int]]
    }

    /// The version of both files.
    var version: Version {
        Version(
            states: [certificate, key].map { path in
                var status = stat()
                guard stat(path, &status) == 0 else { return [] }
                return [Int(status.st_ino), Int(status.st_size), status.st_mtim.tv_sec, status.st_mtim.tv_nsec]
            }
        )
    }

    /// Loads the pair.
    ///
    /// - Throws: `TLSError.refusedPair`.
    func load(now: Date = Date()) throws(TLSError) -> FileCertificate {
        let (chain, secret) = (try read(certificate), try read(key))
        var status = stat()
        guard stat(key, &status) == 0, status.st_mode & 0o006 == 0 else {
            throw .refusedPair(path: key, reason: "every user can read the key; run chmod o= on it")
        }
        let key: NIOSSLPrivateKey
        do { key = try NIOSSLPrivateKey(bytes: secret, format: .pem) } catch {
            throw .refusedPair(path: self.key, reason: "it is not a private key without a passphrase, as PEM")
        }
        let loaded: FileCertificate
        do { loaded = try FileCertificate(NIOSSLCertificate.fromPEMBytes(chain), key) } catch {
            throw .refusedPair(path: certificate, reason: "it is not a certificate as PEM")
        }
        guard loaded.matches else {
            throw .refusedPair(path: certificate, reason: "it is not the certificate of the key in \(self.key)")
        }
        guard loaded.expiresAt > now else {
            throw .refusedPair(path: certificate, reason: "the certificate has expired")
        }
        return loaded
    }

    private func read(_ path: String) throws(TLSError) -> [UInt8] {
        let data: Data
        do { data = try Data(contentsOf: URL(filePath: path)) } catch {
            throw .refusedPair(path: path, reason: "it could not be read")
        }
        guard data.count <= Self.limit else { throw .refusedPair(path: path, reason: "it is too large") }
        return Array(data)
    }
}

/// A certificate of the owner's own with its key.
struct FileCertificate: Sendable {
    let chain: [NIOSSLCertificate]
    let key: NIOSSLPrivateKey
    /// The names in the certificate, in lower case, of which `*.` stands for one label.
    let names: [String]
    let expiresAt: Date

    init(_ chain: [NIOSSLCertificate], _ key: NIOSSLPrivateKey) throws {
        guard let first = chain.first else { throw IdentityMismatch() }
        let certificate = try Certificate(derEncoded: try first.toDERBytes())
        let alternatives = try certificate.extensions.subjectAlternativeNames.map(Array.init) ?? []
        names = alternatives.compactMap { if case .dnsName(let name) = $0 { name.lowercased() } else { nil } }
        expiresAt = certificate.notValidAfter
        (self.chain, self.key) = (chain, key)
    }

    /// Returns whether the key is that of the certificate.
    var matches: Bool { (try? NIOSSLContext(configuration: .server(chain, key))) != nil }

    /// Returns whether the certificate is for a host name (RFC 9525, section 6.3).
    func isFor(_ host: String) -> Bool {
        let host = host.lowercased()
        return names.contains { name in
            name == host || name.hasPrefix("*.") && host.drop { $0 != "." } == name.dropFirst(1) && !host.hasPrefix(".")
        }
    }
}

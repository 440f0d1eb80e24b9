import NIOSSL

/// The servers of etcd and the certificates for them.
package struct EtcdConfiguration: Sendable {
    package let endpoints: [EtcdEndpoint]
    let context: NIOSSLContext

    /// - Parameters:
    ///   - endpoints: At least one server of the same cluster.
    ///   - authority: The certificates of the authorities that sign for the servers, as PEM.
    ///   - certificate: The client's certificate, as PEM. Its CN is the name of the user of etcd.
    ///   - key: The private key of the certificate, as PEM.
    /// - Throws: `TeamStoreError.failed` if a text is not PEM, or there is no endpoint.
    package init(
        endpoints: [EtcdEndpoint],
        authority: String,
        certificate: String,
        key: String
    ) throws(TeamStoreError) {
        guard !endpoints.isEmpty else { throw .failed(reason: "no endpoint of etcd is configured") }
        self.endpoints = endpoints
        do {
            var tls = TLSConfiguration.makeClientConfiguration()
            tls.minimumTLSVersion = .tlsv12
            tls.applicationProtocols = ["h2"]
            tls.trustRoots = .certificates(try NIOSSLCertificate.fromPEMBytes(Array(authority.utf8)))
            tls.certificateChain = try NIOSSLCertificate.fromPEMBytes(Array(certificate.utf8)).map { .certificate($0) }
            tls.privateKey = .privateKey(try NIOSSLPrivateKey(bytes: Array(key.utf8), format: .pem))
            context = try NIOSSLContext(configuration: tls)
        } catch {
            throw .failed(reason: "the certificates for etcd cannot be used: \(error)")
        }
    }
}

/// The time limits of calls and watches.
///
/// A call ends within `call` + 2 × `attempt`: the last attempt may begin just before `call`, and has two steps.
enum EtcdTiming {
    /// The limit of each step of an attempt: the connection with its TLS handshake, and the request with its response.
    static let attempt = Duration.milliseconds(1500)
    /// The time after which no further attempt begins.
    static let call = Duration.milliseconds(3300)
    /// The time between two progress requests of a watch. A watch fails after three without a response.
    static let progress = Duration.milliseconds(1500)
}

import FoundationEssentials

/// A certificate authority made with openssl, for a real etcd and its clients.
package final class EtcdCertificates: Sendable {
    /// A certificate with its key, as PEM and as files.
    package struct Credentials: Sendable {
        package let certificate: String
        package let key: String
        package let certificatePath: String
        package let keyPath: String
    }

    /// The certificate of the authority, as PEM.
    package let authority: String
    package let authorityPath: String
    private let authorityKeyPath: String
    private let folder: String
    private let scratch: ScratchFolder

    package init(in scratch: ScratchFolder) async throws {
        self.scratch = scratch
        let name = "certificates-\(UInt32.random(in: 0 ... .max))"
        folder = try scratch.makeFolder(name)
        authorityPath = "\(folder)/authority.pem"
        authorityKeyPath = "\(folder)/authority.key"
        try await Program.run(
            "openssl",
            ["req", "-x509", "-nodes", "-days", "2", "-subj", "/CN=\(name)", "-out", authorityPath]
                + Self.newKey(authorityKeyPath),
            in: scratch
        )
        authority = try Self.read(authorityPath)
    }

    /// Creates a key and its certificate, valid for clients, and for servers with these addresses.
    ///
    /// The user of etcd is the name. Without addresses, the certificate has no alternative names, as that of a host.
    package func issue(_ name: String, addresses: Set<String> = [], days: Int = 2) async throws -> Credentials {
        let path = "\(folder)/\(name)-\(UInt32.random(in: 0 ... .max))"
        var extensions = "extendedKeyUsage=serverAuth,clientAuth"
        if !addresses.isEmpty {
            extensions += "\nsubjectAltName=" + addresses.sorted().map { "IP:\($0)" }.joined(separator: ",")
        }
        try Data(extensions.utf8).write(to: URL(filePath: "\(path).extensions"))
        try await Program.run(
            "openssl",
            ["req", "-new", "-nodes", "-subj", "/CN=\(name)", "-out", "\(path).request"] + Self.newKey("\(path).key"),
            in: scratch
        )
        let serial = "\(UInt64.random(in: 1 ... .max))"
        try await Program.run(
            "openssl",
            [
                "x509", "-req", "-days", "\(days)", "-in", "\(path).request", "-out", "\(path).pem",
                "-CA", authorityPath, "-CAkey", authorityKeyPath, "-set_serial", serial,
                "-extfile", "\(path).extensions",
            ],
            in: scratch
        )
        return Credentials(
            certificate: try Self.read("\(path).pem"),
            key: try Self.read("\(path).key"),
            certificatePath: "\(path).pem",
            keyPath: "\(path).key"
        )
    }

    /// Issues the certificates of a server on loopback. Returns the options of etcd that use them.
    package func options(of server: String) async throws -> [String] {
        let own = try await issue(server, addresses: ["127.0.0.1"])
        let peer = try await issue("etcd.peer", addresses: ["127.0.0.1"])
        return [
            "--client-cert-auth", "--trusted-ca-file", authorityPath,
            "--cert-file", own.certificatePath, "--key-file", own.keyPath,
            "--peer-cert-file", peer.certificatePath, "--peer-key-file", peer.keyPath,
            "--peer-client-cert-auth", "--peer-trusted-ca-file", authorityPath,
            "--peer-cert-allowed-cn", "etcd.peer",
        ]
    }

    private static func newKey(_ path: String) -> [String] {
        ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-keyout", path]
    }

    private static func read(_ path: String) throws -> String {
        String(decoding: try Data(contentsOf: URL(filePath: path)), as: UTF8.self)
    }
}

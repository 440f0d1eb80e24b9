import Synchronization

/// A server of a cluster of etcd: a real etcd with TLS, which requires certificates of its clients.
package final class EtcdServer: Sendable {
    /// The address of a server, and its network namespace; nil for the network of the test.
    package struct Place: Sendable {
        package let address: String
        package let namespace: NetworkNamespace?

        package init(address: String = "127.0.0.1", namespace: NetworkNamespace? = nil) {
            self.address = address
            self.namespace = namespace
        }
    }

    package let name: String
    /// The URL for clients.
    package let endpoint: String
    let peerURL: String
    private let place: Place
    private let folder: String
    private let credentials: EtcdCertificates.Credentials
    private let peerCredentials: EtcdCertificates.Credentials
    private let authorityPath: String
    private let scratch: ScratchFolder
    private let program = Mutex<Program?>(nil)

    init(
        _ name: String,
        at place: Place,
        ports: (client: UInt16, peer: UInt16),
        certificates: EtcdCertificates,
        in scratch: ScratchFolder
    ) async throws {
        self.name = name
        self.place = place
        self.scratch = scratch
        endpoint = "https://\(place.address):\(ports.client)"
        peerURL = "https://\(place.address):\(ports.peer)"
        folder = try scratch.makeFolder("\(name)-\(ports.client)")
        let addresses: Set = ["127.0.0.1", place.address]
        credentials = try await certificates.issue(name, addresses: addresses)
        peerCredentials = try await certificates.issue("etcd.peer", addresses: addresses)
        authorityPath = certificates.authorityPath
    }

    /// Starts the server, also again after its end. Returns before it is ready.
    func start(members: [EtcdServer]) async throws {
        let cluster = members.map { "\($0.name)=\($0.peerURL)" }.joined(separator: ",")
        let program = try await Program(
            "etcd",
            [
                "--name", name, "--data-dir", "\(folder)/data", "--initial-cluster", cluster,
                "--listen-client-urls", endpoint, "--advertise-client-urls", endpoint,
                "--listen-peer-urls", peerURL, "--initial-advertise-peer-urls", peerURL,
                "--client-cert-auth", "--trusted-ca-file", authorityPath,
                "--cert-file", credentials.certificatePath, "--key-file", credentials.keyPath,
                "--peer-cert-file", peerCredentials.certificatePath, "--peer-key-file", peerCredentials.keyPath,
                "--peer-client-cert-auth", "--peer-trusted-ca-file", authorityPath,
                "--peer-cert-allowed-cn", "etcd.peer",
                "--snapshot-count", "10000", "--quota-backend-bytes", "\(256 << 20)",
                "--logger", "zap", "--log-outputs", "stderr",
            ],
            in: scratch,
            namespace: place.namespace
        )
        self.program.withLock { $0 = program }
    }

    /// Returns when the server has found a leader and accepts clients.
    package func waitUntilReady() async throws {
        try await running.waitForLine("serving client traffic securely", within: .seconds(20))
    }

    package var processID: Int32 { get throws { try running.processID } }

    /// Kills the server. Its data stays.
    package func kill() async throws {
        let program = try running
        program.kill()
        _ = try await program.exitStatus()
    }

    /// Stops the server with its sockets open.
    package func freeze() throws { try running.freeze() }

    package func thaw() throws { try running.thaw() }

    private var running: Program {
        get throws {
            guard let program = program.withLock({ $0 }) else { throw TestSupportError("\(name) is not started") }
            return program
        }
    }
}

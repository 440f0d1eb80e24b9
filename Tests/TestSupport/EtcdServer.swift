import FoundationEssentials
import Synchronization

/// A real etcd with TLS, which requires certificates of its clients: one server of a cluster.
package final class EtcdServer: Sendable {
    package let name: String
    /// The URL for clients.
    package let endpoint: String
    package let peerURL: String
    private let host: NetworkHost
    private let folder: String
    private let tls: [String]
    private let scratch: ScratchFolder
    /// The maximum size of the database in bytes.
    private let quota: Int
    private let program = Mutex<Program?>(nil)

    /// Describes a server. `tls` is the options of etcd for its certificates, and `quota` the limit of its database.
    package init(
        _ name: String,
        on host: NetworkHost = .loopback,
        ports: (client: UInt16, peer: UInt16),
        tls: [String],
        quota: Int = 256 << 20,
        in scratch: ScratchFolder
    ) {
        self.name = name
        self.host = host
        self.scratch = scratch
        self.tls = tls
        self.quota = quota
        endpoint = "https://\(host.address):\(ports.client)"
        peerURL = "https://\(host.address):\(ports.peer)"
        folder = scratch.file("\(name)-\(ports.client)")
    }

    /// Returns the options of the certificates in the file `etcd.env` of a folder by `patchbay team certificate`.
    package static func certificateOptions(in folder: String) throws -> [String] {
        try variables(in: folder).compactMap { name, value in
            guard ["FILE", "AUTH", "CN"].contains(name.split(separator: "_").last) else { return nil }
            return "--\(name.dropFirst(5).lowercased().replacing("_", with: "-"))=\(value)"
        }
    }

    /// Returns the variables of the file `etcd.env` in a folder, with the files in the same folder.
    package static func variables(in folder: String) throws -> [String: String] {
        let lines = try String(contentsOfFile: "\(folder)/etcd.env", encoding: .utf8).split(separator: "\n")
        return Dictionary(
            uniqueKeysWithValues: lines.map { line in
                let parts = line.split(separator: "=", maxSplits: 1)
                let value = parts[1].dropFirst().dropLast().replacing("/etc/etcd-patchbay", with: folder)
                return (String(parts[0]), String(value))
            }
        )
    }

    /// Starts the server, also again after its end. Returns before it is ready. `joining` is true for a new member of a
    /// cluster that exists.
    package func start(members: [EtcdServer], joining: Bool = false) async throws {
        let cluster = members.map { "\($0.name)=\($0.peerURL)" }.joined(separator: ",")
        let program = try await Program(
            "etcd",
            [
                "--name", name, "--data-dir", folder, "--initial-cluster", cluster,
                "--listen-client-urls", endpoint, "--advertise-client-urls", endpoint,
                "--listen-peer-urls", peerURL, "--initial-advertise-peer-urls", peerURL,
                "--snapshot-count", "10000", "--quota-backend-bytes", "\(quota)",
                "--initial-cluster-state", joining ? "existing" : "new",
                "--logger", "zap", "--log-outputs", "stderr",
            ] + tls,
            in: scratch,
            namespace: host.namespace
        )
        self.program.withLock { $0 = program }
    }

    /// Returns when the server has found a leader and accepts clients.
    package func waitUntilReady() async throws { try await running.waitForLine("serving client traffic securely") }

    /// Kills the server. Its data stays.
    package func kill() async throws {
        let program = try running
        program.kill()
        _ = try await program.exitStatus()
    }

    /// Deletes the data of a killed server.
    package func wipe() throws { try FileManager.default.removeItem(atPath: folder) }

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

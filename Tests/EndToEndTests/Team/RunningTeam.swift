import FoundationEssentials
import Glibc
import SystemIO
import TestSupport
import Testing

/// Two hosts of a team, each a real broker, and a real etcd, all on loopback. `lab1` has the authority.
final class RunningTeam {
    let lab1: RunningBroker
    let lab2: RunningBroker
    private(set) var etcd: Program
    let scratch: ScratchFolder
    /// The addresses of the team listeners.
    let addresses: [String]
    /// The ports of the API on loopback.
    let apiPorts: [UInt16]
    let etcdURL: String
    private let etcdOptions: [String]

    private static func configuration(api: UInt16, team: UInt16, probing port: UInt16?) -> String {
        """
        [api]
        port = \(api)
        [team]
        listen = "127.0.0.1:\(team)"
        addresses = ["127.0.0.1"]
        """ + (port.map { "\n[devices]\nprobe_ports = [\($0)]\n" } ?? "")
    }

    /// Creates the team, joins it with the second host, and returns when both see each other.
    ///
    /// - Parameters:
    ///   - scratch: The folder of the test.
    ///   - ownPhones: The phones of `lab1`.
    ///   - phones: The phones of `lab2`.
    ///   - port: The port of an app on the phones, which both brokers probe.
    /// - Throws: `TestSupportError`.
    init(
        in scratch: ScratchFolder,
        ownPhones: UsbmuxdFixture? = nil,
        phones: UsbmuxdFixture? = nil,
        probing port: UInt16? = nil
    ) async throws {
        self.scratch = scratch
        let ports = try FreePorts.take(6)
        addresses = ports[0..<2].map { "127.0.0.1:\($0)" }
        apiPorts = Array(ports[2..<4])
        lab1 = try await RunningBroker(
            in: scratch,
            named: "lab1",
            phones: ownPhones,
            configuration: Self.configuration(api: ports[2], team: ports[0], probing: port)
        )
        lab2 = try await RunningBroker(
            in: scratch,
            named: "lab2",
            phones: phones,
            configuration: Self.configuration(api: ports[3], team: ports[1], probing: port)
        )
        let url = "https://127.0.0.1:\(ports[4])"
        etcdURL = url
        // The registry does not answer yet, so the command fails after it has created the authority.
        _ = try await lab1.start("team", "init", "lab", "--etcd", url, "--host", "lab1").exitStatus()
        let files = scratch.file("etcd-certificates")
        let options = try await lab1.ask("team", "certificate", "etcd1", "127.0.0.1", "--out", files)
        let peer = "http://127.0.0.1:\(ports[5])"
        etcdOptions =
            [
                "--name", "etcd1", "--data-dir", scratch.file("etcd"), "--listen-client-urls", url,
                "--advertise-client-urls", url, "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
                "--initial-cluster", "etcd1=\(peer)",
                "--logger", "zap", "--log-outputs", "stderr",
            ] + options.filter { !$0.hasPrefix("--peer-") }
        etcd = try await Program("etcd", etcdOptions, in: scratch)
        try await etcd.waitForLine("serving client traffic securely", within: .seconds(20))
        _ = try await lab1.ask("team", "init", "lab")
        try await lab1.restart()
        let invite = try await lab1.ask("team", "invite")
        let pairing = try #require(invite.first { $0.contains("PATCHBAY") }, "\(invite)")
        let join = try await lab2.start(["team", "join", "-", "--host", "lab2"], input: .pipe)
        try join.write(String(pairing.drop { $0 == " " }) + "\n")
        join.closeInput()
        #expect(try await join.exitStatus() == .exited(0), "\(join.log)")
        try await lab2.restart()
        for (broker, other) in [(lab1, "lab2"), (lab2, "lab1")] { try await waitForHost(other, at: broker) }
    }

    /// Starts a killed etcd again with its data.
    func restartEtcd() async throws {
        _ = try await etcd.exitStatus()
        etcd = try await Program("etcd", etcdOptions, in: scratch)
        try await etcd.waitForLine("serving client traffic securely", within: .seconds(20))
    }

    /// Waits until a broker lists another host as running.
    func waitForHost(_ host: String, at broker: RunningBroker) async throws {
        try await waitUntil { try await broker.ask("team").contains { $0.contains(host) && $0.contains("online") } }
    }

    /// Waits until a broker lists an endpoint in this state.
    func waitForEndpoint(_ id: String, _ state: String = "online", at broker: RunningBroker) async throws {
        try await waitUntil {
            try await broker.ask("list").contains { $0.contains(id) && $0.contains(state) }
        }
    }

    /// Polls a condition of another process.
    func waitUntil(within limit: Duration = .seconds(20), _ condition: () async throws -> Bool) async throws {
        let deadline = ContinuousClock.now + limit
        while try await !condition() {
            guard ContinuousClock.now < deadline else { throw TestSupportError("the condition did not become true") }
            try await Task.sleep(for: .milliseconds(50))
        }
    }

    /// Sends a request to the team listener of a host with the certificate and the key of a folder. Returns the status
    /// and the body; status 0 after a failed handshake.
    func request(
        _ path: String,
        to address: String,
        certificate: (path: String, key: String)?,
        headers: [String] = []
    ) async throws -> (status: Int, body: String) {
        var words = ["-sSk", "--max-time", "10", "-w", "\n%{http_code}"]
        if let certificate { words += ["--cert", certificate.path, "--key", certificate.key] }
        words += headers.flatMap { ["-H", $0] } + ["https://\(address)\(path)"]
        let curl = try await Program("curl", words, in: scratch)
        _ = try await curl.exitStatus()
        let status = curl.output.last.flatMap { Int($0) } ?? 0
        return (status, curl.output.dropLast().joined(separator: "\n"))
    }
}

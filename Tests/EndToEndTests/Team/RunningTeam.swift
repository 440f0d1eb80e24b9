import FoundationEssentials
import Glibc
import SystemIO
import TestSupport
import Testing

/// Two hosts of a team, each a real broker, and a real etcd: one server on loopback, or a cluster in a `TeamNetwork`.
/// `lab1` has the authority.
final class RunningTeam {
    let lab1: RunningBroker
    let lab2: RunningBroker
    let etcd: [EtcdServer]
    let scratch: ScratchFolder
    /// The addresses of the team listeners.
    let addresses: [String]
    /// The ports of the API on loopback.
    let apiPorts: [UInt16]
    private let etcdNamespace: NetworkNamespace?

    static func configuration(
        api: UInt16,
        team: String,
        probing port: UInt16? = nil,
        publishing published: UInt16? = nil
    ) -> String {
        """
        [api]
        port = \(api)
        [team]
        listen = "\(team)"
        addresses = ["\(team.split(separator: ":")[0])\(published.map { ":\($0)" } ?? "")"]
        """ + (port.map { "\n[devices]\nprobe_ports = [\($0)]\n" } ?? "")
    }

    /// Creates the team, joins it with the second host, and returns when both see each other.
    ///
    /// - Parameters:
    ///   - scratch: The folder of the test.
    ///   - ownPhones: The phones of `lab1`.
    ///   - phones: The phones of `lab2`.
    ///   - android: The Android phones of `lab2`.
    ///   - port: The port of an app on the phones, which both brokers probe.
    ///   - published: The port that `lab2` publishes; nil for that of its team listener.
    ///   - network: The hosts; nil to run all on loopback.
    ///   - quota: The maximum size of etcd's database in bytes.
    /// - Throws: `TestSupportError`.
    init(
        in scratch: ScratchFolder,
        ownPhones: UsbmuxdFixture? = nil,
        phones: UsbmuxdFixture? = nil,
        android: ADBFixture? = nil,
        probing port: UInt16? = nil,
        publishing published: UInt16? = nil,
        network: TeamNetwork? = nil,
        quota: Int = 256 << 20
    ) async throws {
        self.scratch = scratch
        let hosts = network?.hosts ?? [.loopback, .loopback]
        let etcdHosts = network?.etcdHosts ?? [.loopback]
        let ports = try FreePorts.take(4 + 2 * etcdHosts.count)
        addresses = zip(hosts, ports).map { "\($0.address):\($1)" }
        apiPorts = Array(ports[2..<4])
        lab1 = try await RunningBroker(
            in: scratch,
            named: "lab1",
            phones: ownPhones,
            namespace: hosts[0].namespace,
            configuration: Self.configuration(api: ports[2], team: addresses[0], probing: port)
        )
        lab2 = try await RunningBroker(
            in: scratch,
            named: "lab2",
            phones: phones,
            android: android,
            namespace: hosts[1].namespace,
            configuration: Self.configuration(api: ports[3], team: addresses[1], probing: port, publishing: published)
        )
        etcdNamespace = etcdHosts[0].namespace
        etcd = try await Self.startEtcd(on: etcdHosts, ports: Array(ports[4...]), for: lab1, quota: quota, in: scratch)
        try await Self.join(lab2, as: "lab2", to: lab1)
        for (broker, other) in [(lab1, "lab2"), (lab2, "lab1")] { try await waitForHost(other, at: broker) }
    }

    /// Creates the team, and meanwhile starts etcd with its certificates.
    static func startEtcd(
        on hosts: [NetworkHost],
        ports: [UInt16],
        for authority: RunningBroker,
        named host: String = "lab1",
        quota: Int = 256 << 20,
        in scratch: ScratchFolder
    ) async throws -> [EtcdServer] {
        let urls = hosts.indices.flatMap { ["--etcd", "https://\(hosts[$0].address):\(ports[2 * $0])"] }
        // The registry does not answer yet, so the command waits after it has created the authority.
        let creation = try await authority.start(["team", "init", "lab", "--host", host] + urls)
        _ = try await creation.waitForLine("Waiting up to 10m")
        let folder = scratch.file("etcd-certificates")
        var servers: [EtcdServer] = []
        for (index, machine) in hosts.enumerated() {
            let name = host == "lab1" ? "etcd\(index + 1)" : "etcd\(index + 1)-\(host)"
            _ = try await authority.ask("team", "certificate", name, machine.address, "--out", folder)
            servers.append(
                EtcdServer(
                    name,
                    on: machine,
                    ports: (ports[2 * index], ports[2 * index + 1]),
                    tls: try EtcdServer.certificateOptions(in: "\(folder)/\(name)"),
                    quota: quota,
                    in: scratch
                )
            )
        }
        for server in servers { try await server.start(members: servers) }
        for server in servers { try await server.waitUntilReady() }
        #expect(try await creation.exitStatus(within: .seconds(30)) == .exited(0), "\(creation.log)")
        return servers
    }

    /// Runs the body with a team whose second host has an app as the static endpoint `shop`.
    static func startWithApp(in scratch: ScratchFolder) async throws -> (RunningTeam, SampleApp) {
        let app = try await SampleApp(in: scratch)
        let team = try await RunningTeam(in: scratch)
        _ = try await team.lab2.ask("add", "shop", "127.0.0.1:\(app.port)", "--kind", "appreveal")
        try await team.waitForEndpoint("shop.lab2", at: team.lab1)
        return (team, app)
    }

    /// Joins a broker to the team of another one.
    static func join(_ broker: RunningBroker, as host: String, to authority: RunningBroker) async throws {
        let invite = try await authority.ask("team", "invite")
        let pairing = try #require(invite.first { $0.contains("PATCHBAY") }, "\(invite)")
        let join = try await broker.start(["team", "join", "-", "--host", host], input: .pipe)
        try join.write(String(pairing.drop { $0 == " " }) + "\n")
        join.closeInput()
        #expect(try await join.exitStatus() == .exited(0), "\(join.log)")
    }

    /// Starts a killed etcd server again with its data. Returns before it is ready.
    func restartEtcd(_ server: EtcdServer) async throws { try await server.start(members: etcd) }

    /// Runs etcdctl with the certificate of a user in the state of a broker: `host`, or `root` at the authority.
    @discardableResult
    func etcdctl(_ arguments: [String], as broker: RunningBroker, user: String = "host") async throws -> [String] {
        let identity = "\(broker.state)/team/\(user).pem"
        return try await Program.run(
            "etcdctl",
            [
                "--endpoints", etcd.map(\.endpoint).joined(separator: ","), "--cacert", "\(broker.state)/team/ca.pem",
                "--cert", identity, "--key", identity,
            ] + arguments,
            in: scratch,
            environment: ["ETCDCTL_API": "3"],
            namespace: etcdNamespace
        )
    }

    /// Waits until a broker lists another host as running.
    func waitForHost(_ host: String, at broker: RunningBroker) async throws {
        try await waitUntil { try await broker.ask("team").contains { $0.contains(host) && $0.contains("online") } }
    }

    /// Waits until a broker lists an endpoint in this state.
    func waitForEndpoint(_ id: String, _ state: String = "online", at broker: RunningBroker) async throws {
        try await waitUntil { try await broker.ask("list").contains { $0.contains(id) && $0.contains(state) } }
    }

    /// Polls a condition of another process. The error names the line of the call.
    func waitUntil(
        within limit: Duration = eventLimit,
        file: String = #fileID,
        line: Int = #line,
        _ condition: () async throws -> Bool
    ) async throws {
        let deadline = ContinuousClock.now + limit
        while try await !condition() {
            guard ContinuousClock.now < deadline else {
                throw TestSupportError("the condition of \(file):\(line) did not become true within \(limit)")
            }
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

import Logging
import Model
import Samples
import Team
import TestSupport
import Testing

/// Users, roles and certificates of a real etcd.
@Suite(.scratchFolder) struct EtcdAdministrationTests {
    private let scratch = ScratchFolder.current
    private static let one = HostName("lab1")
    private static let other = HostName("lab2")

    /// Starts etcd with authentication and two hosts.
    private func start(in scratch: ScratchFolder) async throws -> (EtcdCluster, EtcdAdministration) {
        let cluster = try await EtcdCluster(in: scratch)
        let administration = EtcdAdministration(try await cluster.client())
        try await administration.enableAuthentication()
        for host in [Self.one, Self.other] { try await administration.addHost(host) }
        return (cluster, administration)
    }

    private func isDenied(_ error: any Error) -> Bool { if case TeamStoreError.denied = error { true } else { false } }

    @Test(.needs(.etcd)) func `a host writes its own entries and claims, and reads all`() async throws {
        let (cluster, _) = try await start(in: scratch)
        let store = try await cluster.store("lab1")
        let lease = try await store.grantSessionLease(timeToLive: .seconds(60))
        let keys = ["host/lab1", "ep/lab1/app", "dev/lab1/phone.usb", "claim/device-phone"]
        for key in keys { try await store.put("/patchbay/v1/\(key)", sessionLease: lease) }
        #expect(
            try await store.write(
                [.put(key: "/patchbay/v1/claim/x", value: [], sessionLease: lease)],
                if: .absent(key: "/patchbay/v1/claim/x")
            )
        )
        #expect(try await store.write([.deleteAll(prefix: "/patchbay/v1/ep/lab1/")], if: nil))
        #expect(try await cluster.store("lab2").list("/patchbay/v1/").entries.count == 4)
        try await store.renewSessionLease(lease)
    }

    @Test(.needs(.etcd)) func `a host writes nothing else`() async throws {
        let (cluster, _) = try await start(in: scratch)
        let store = try await cluster.store("lab1")
        for key in ["meta", "member/lab1", "member/lab2", "host/lab2", "host/lab11", "ep/lab2/app", "ep/lab11/x", "x"] {
            await #expect("\(key)") { try await store.put("/patchbay/v1/\(key)") } throws: { isDenied($0) }
        }
        await #expect { _ = try await store.write([.deleteAll(prefix: "/patchbay/v1/ep/")], if: nil) } throws: {
            isDenied($0)
        }
        await #expect { _ = try await store.list("/") } throws: { isDenied($0) }
        await #expect { _ = try await store.list("") } throws: { isDenied($0) }
        await #expect { for try await _ in store.changes(of: "/", after: 1) {} } throws: { isDenied($0) }
        let administration = EtcdAdministration(try await cluster.client("lab1"))
        let lab3 = HostName("lab3")
        await #expect { try await administration.addHost(lab3) } throws: { isDenied($0) }
    }

    @Test(.needs(.etcd)) func `a removed host is denied, and a host of the same name begins anew`() async throws {
        let (cluster, administration) = try await start(in: scratch)
        let store = try await cluster.store("lab1")
        try await store.put("/patchbay/v1/host/lab1")
        try await administration.removeHost(Self.one)
        await #expect { try await store.put("/patchbay/v1/host/lab1") } throws: { isDenied($0) }
        await #expect { _ = try await store.list("/patchbay/v1/") } throws: { isDenied($0) }
        #expect(try await administration.users() == ["lab2", "root"])
        try await administration.addHost(Self.one)
        try await store.put("/patchbay/v1/host/lab1")
    }

    @Test(.needs(.etcd)) func `every step may be repeated`() async throws {
        let (_, administration) = try await start(in: scratch)
        try await administration.enableAuthentication()
        for _ in 0..<2 { try await administration.addHost(Self.one) }
        #expect(try await administration.users() == ["lab1", "lab2", "root"])
        let lab1 = Self.one
        for hadUser in [true, false] { #expect(try await administration.removeHost(lab1) == hadUser) }
        #expect(try await administration.users() == ["lab2", "root"])
    }

    @Test(.needs(.etcd)) func `a host does not become a user whom Patchbay did not create`() async throws {
        let (cluster, administration) = try await start(in: scratch)
        try await cluster.etcdctl("user", "add", "backup", "--no-password")
        try await cluster.etcdctl("user", "grant-role", "backup", "root")
        let backup = HostName("backup")
        for _ in 0..<2 {
            await #expect { try await administration.addHost(backup) } throws: { error in
                "\(error)".contains("etcd has another user with the name backup")
            }
        }
        #expect(try await cluster.etcdctl("user", "get", "backup").contains { $0.hasSuffix(" root") })
    }

    @Test(.needs(.etcd)) func `the removal of a host keeps a user whom Patchbay did not create`() async throws {
        let (cluster, administration) = try await start(in: scratch)
        try await cluster.etcdctl("user", "add", "backup", "--no-password")
        try await administration.removeHost(HostName("backup"))
        #expect(try await administration.users() == ["backup", "lab1", "lab2", "root"])
    }

    @Test(.needs(.etcd)) func `no host has the name of the administrator`() async throws {
        let administration = EtcdAdministration(try await EtcdCluster(in: scratch).client())
        let root = HostName("root")
        await #expect(throws: TeamStoreError.self) { try await administration.addHost(root) }
        await #expect(throws: TeamStoreError.self) { try await administration.removeHost(root) }
    }

    @Test(.needs(.etcd)) func `the certificate of another authority is denied`() async throws {
        let cluster = try await EtcdCluster(in: scratch)
        let foreign = try await EtcdCertificates(in: scratch).issue("lab1")
        let store = try store(cluster, authority: cluster.certificates.authority, foreign)
        await #expect { _ = try await store.list("/") } throws: { isDenied($0) }
    }

    @Test(.needs(.etcd)) func `a server with the certificate of another authority gets no request`() async throws {
        let cluster = try await EtcdCluster(in: scratch)
        let other = try await EtcdCertificates(in: scratch)
        let store = try store(cluster, authority: other.authority, try await cluster.certificates.issue("lab1"))
        await #expect { _ = try await store.list("/") } throws: { error in
            guard case TeamStoreError.unreachable(let reason) = error else { return false }
            return reason.contains("not of the configured authority")
        }
    }

    @Test(
        .needs(.openssl),
        arguments: [
            ("10.9.9.9", 2, "the certificate of etcd is not for 127.0.0.1"),
            ("127.0.0.1", -1, "has expired; check the clock"),
        ]
    )
    func `a server certificate for another address or another time is named so`(
        address: String,
        days: Int,
        reason: String
    ) async throws {
        let certificates = try await EtcdCertificates(in: scratch)
        let server = try await certificates.issue("etcd1", addresses: [address], days: days)
        let port = try FreePorts.take(1)[0]
        let program = try await Program(
            "openssl",
            // With -www, the server does not end with its standard input.
            ["s_server", "-www", "-accept", "\(port)", "-cert", server.certificatePath, "-key", server.keyPath],
            in: scratch
        )
        try await program.waitForLine("ACCEPT")
        let host = try await certificates.issue("lab1")
        let configuration = try EtcdConfiguration(
            endpoints: [EtcdEndpoint(host: "127.0.0.1", port: port)],
            authority: certificates.authority,
            certificate: host.certificate,
            key: host.key
        )
        let client = EtcdClient(configuration, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        await #expect { _ = try await EtcdStore(client).list("/") } throws: { error in
            guard case TeamStoreError.unreachable(let text) = error else { return false }
            return text.contains(reason)
        }
    }

    private func store(
        _ cluster: EtcdCluster,
        authority: String,
        _ credentials: EtcdCertificates.Credentials
    ) throws -> EtcdStore {
        let configuration = try EtcdConfiguration(
            endpoints: cluster.endpoints.compactMap { EtcdEndpoint($0) },
            authority: authority,
            certificate: credentials.certificate,
            key: credentials.key
        )
        return EtcdStore(EtcdClient(configuration, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }))
    }

    @Test(.needs(.etcd)) func `the administrator sees the state of a server`() async throws {
        let cluster = try await EtcdCluster(in: scratch)
        let administration = EtcdAdministration(try await cluster.client())
        let status = try await administration.status()
        #expect(status.hasLeader && status.errors.isEmpty)
    }

    @Test func `text that is not PEM is not a certificate`() throws {
        let endpoint = try #require(EtcdEndpoint("https://localhost"))
        #expect(throws: TeamStoreError.self) {
            try EtcdConfiguration(endpoints: [endpoint], authority: "x", certificate: "y", key: "z")
        }
        #expect(throws: TeamStoreError.failed(reason: "no endpoint of etcd is configured")) {
            try EtcdConfiguration(endpoints: [], authority: "", certificate: "", key: "")
        }
    }
}

import Client
import FoundationEssentials
import Glibc
import Model
import Samples
import TestSupport
import Testing

@testable import patchbay

@Suite(.scratchFolder) struct CredentialStoreTests {
    private let scratch = ScratchFolder.current
    private let grant = PairingSample.grant

    private func mode(_ path: String) -> Int { PrivateFileSample.mode(path) }

    @Test func `a grant is stored with mode 0600 and can be read back`() async throws {
        let store = try CredentialStore(environment: ["XDG_STATE_HOME": scratch.file("state"), "HOME": "/nowhere"])
        umask(0)
        defer { umask(0o022) }
        try store.prepare()

        let file = try store.save(CredentialStore.Credential(broker: "127.0.0.1:7282", grant: grant, token: "pbg_x"))

        #expect(file == scratch.file("state/patchbay/grants/0a1b2c3d.json"))
        #expect(mode(file) == 0o600)
        #expect(mode(store.path) == 0o700)
        let data = try Data(contentsOf: URL(filePath: file))
        #expect(try JSONCoding.decoder().decode(CredentialStore.Credential.self, from: data).token == "pbg_x")
        #expect(try FileManager.default.contentsOfDirectory(atPath: store.path) == ["0a1b2c3d.json"])
    }

    @Test func `an invite is redeemed with one key until its grant is stored, also after a crash`() throws {
        let store = try CredentialStore(environment: ["XDG_STATE_HOME": scratch.path])
        try store.prepare()

        let key = try store.redemptionKey(of: "0a1b2c3d")
        let next = try CredentialStore(environment: ["XDG_STATE_HOME": scratch.path])

        #expect(try next.redemptionKey(of: "0a1b2c3d") == key && key.utf8.count == 43)
        #expect(mode("\(store.path)/.redemption") == 0o600)
        #expect(try store.brokers().isEmpty)
        _ = try next.save(CredentialStore.Credential(broker: "127.0.0.1:7282", grant: grant, token: "pbg_x"))
        #expect(try store.redemptionKey(of: "0a1b2c3d") != key)
        let other = try store.redemptionKey(of: "4e5f6a7b")
        #expect(try store.redemptionKey(of: "4e5f6a7b") == other)
    }

    @Test func `a folder that is accessible to others or a symbolic link is rejected before the invite is redeemed`()
        async throws
    {
        let store = try CredentialStore(environment: ["XDG_STATE_HOME": scratch.path])
        try store.prepare()
        chmod(store.path, 0o755)
        #expect(throws: CLIError.self) { try store.prepare() }

        try FileManager.default.removeItem(atPath: store.path)
        try scratch.makeFolder("elsewhere")
        symlink(scratch.file("elsewhere"), store.path)
        let error = #expect(throws: CLIError.self) { try store.prepare() }

        #expect(error?.status == .configuration)
    }

    @Test func `the error for a missing state folder suggests join --print`() {
        let error = #expect(throws: CLIError.self) { try CredentialStore(environment: ["HOME": "relative"]) }

        #expect(error?.hint == "patchbay join --print -")
    }

    private func grant(_ id: String, made: Double, endsIn seconds: Double) -> Grant {
        .sample(id, createdAt: Date().addingTimeInterval(made), expiresAt: Date().addingTimeInterval(seconds))
    }

    @Test func `the newest unexpired grant for a broker is used`() async throws {
        let store = try CredentialStore(environment: ["XDG_STATE_HOME": scratch.path])
        let broker = BrokerAddress.loopback(host: "127.0.0.1", port: 7_282)
        func keep(_ id: String, at broker: String, made: Double, endsIn seconds: Double) throws -> String {
            let grant = grant(id, made: made, endsIn: seconds)
            return try store.save(CredentialStore.Credential(broker: broker, grant: grant, token: "pbg_\(id)"))
        }
        let none = #expect(throws: CLIError.self) { try store.credential(for: broker) }
        #expect(none?.status == .notPermitted && none?.hint?.hasPrefix("patchbay join -") == true)
        try store.prepare()
        _ = try keep("ended000", at: "127.0.0.1:7282", made: -60, endsIn: -1)
        #expect(throws: CLIError.self) { try store.credential(for: broker) }
        _ = try keep("older000", at: "127.0.0.1:7282", made: -50, endsIn: 60)
        let file = try keep("newer000", at: "[::1]:7282", made: -40, endsIn: 60)
        _ = try keep("other000", at: "127.0.0.1:80", made: -30, endsIn: 60)
        try Data("{".utf8).write(to: URL(filePath: "\(store.path)/x.json"))
        chmod("\(store.path)/x.json", 0o600)

        #expect(try store.credential(for: broker).token == "pbg_newer000")
        #expect(throws: CLIError.self) { try store.credential(for: .unix(path: "/x")) }
        chmod(file, 0o640)
        let exposed = #expect(throws: CLIError.self) { try store.credential(for: broker) }
        #expect(exposed?.status == .configuration)
    }

    @Test(arguments: [
        ("127.0.0.1:7282", BrokerAddress.loopback(host: "127.0.0.1", port: 7_282)),
        ("http://localhost:80/", .loopback(host: "127.0.0.1", port: 80)),
        ("[::1]:7282", .loopback(host: "::1", port: 7_282)), ("/run/x.sock", .unix(path: "/run/x.sock")),
    ])
    func `a broker address is parsed in every notation`(text: String, address: BrokerAddress) throws {
        #expect(try BrokerAddressArgument.address(text) == address)
    }

    @Test(arguments: [
        ("", patchbay.ExitStatus.usage), ("7282", .usage), ("127.0.0.1", .usage), ("127.0.0.1:0", .usage),
        ("192.168.1.7:7282", .notPermitted), ("127.0.0.1.evil.test:7282", .notPermitted), ("::1:80", .notPermitted),
    ])
    func `an address of another machine is rejected, so no token is sent there`(
        text: String,
        status: patchbay.ExitStatus
    ) {
        let error = #expect(throws: CLIError.self) { try BrokerAddressArgument.address(text) }
        #expect(error?.status == status)
    }

    @Test(arguments: [
        ("root@10.9.0.1", "ssh://root@10.9.0.1"), ("SSH://lab", "ssh://lab"),
        ("Ssh://anna@lab:22", "ssh://anna@lab:22"), ("LAB", "lab"), ("a b@c", "127.0.0.1:7282"),
    ])
    func `a mistyped broker address is answered with the address that was meant`(text: String, near: String) {
        let error = #expect(throws: CLIError.self) { try BrokerAddressArgument.address(text) }
        #expect(error?.status == .usage && error?.hint == "--broker \(near)")
    }
}

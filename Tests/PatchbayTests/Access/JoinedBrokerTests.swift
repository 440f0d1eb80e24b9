import Client
import FoundationEssentials
import Glibc
import Model
import Samples
import TestSupport
import Testing
import Transport

@testable import patchbay

@Suite(.scratchFolder) struct JoinedBrokerTests {
    private let scratch = ScratchFolder.current
    private static let pin = KeyPin.sample(1)

    @Test func `a broker that answers 429 is throttled, and its row has the seconds`() {
        let detail = "too many wrong tokens from this client; try again in 25 s"
        let throttled = BrokerRow(broker("lab"), BrokerAnswer(ClientError.refused(Problem(.limit, detail))))
        let ended = BrokerAnswer(ClientError.refused(Problem(.unauthorized, "the token is wrong")))
        let away = BrokerAnswer(ClientError.noListener(address: "192.168.1.7:7283"))

        let table = BrokerRow.table(of: [throttled], now: SampleEndpoints.date).text(width: nil, isColoured: false)
        #expect(table.hasSuffix("throttled: \(detail)"), "\(table)")
        #expect(throttled.state == .throttled && ended.state == .grantEnded && away.state == .unreachable)
        #expect(ended.detail == nil && away.detail == nil)
    }

    private func broker(_ name: String, host: String = "192.168.1.7", token: String? = nil) -> JoinedBroker {
        JoinedBroker(name: name, host: host, port: 7_283, pin: Self.pin, grant: PairingSample.grant, token: token)
    }

    @Test(arguments: [
        ("lab.local", "lab"), ("LAB", "lab"), ("192.168.1.7", "192-168-1-7"), ("fe80::1%eth0", "fe80--1"),
        ("::1", "1"), ("my_lab.example.com", "my-lab"), ("-", "broker"),
        (String(repeating: "a", count: 60), String(repeating: "a", count: 40)),
    ])
    func `the default name comes from the host`(host: String, name: String) {
        #expect(JoinedBroker.defaultName(for: host) == name)
        #expect(JoinedBroker.isName(name))
    }

    @Test(arguments: ["", "-lab", "Lab", "lab.local", "127.0.0.1:7282", "/run/x", "ssh://lab", "lab\u{301}"])
    func `an address is not a name`(text: String) { #expect(!JoinedBroker.isName(text)) }

    @Test func `a broker is stored with its key, found by its name, and deleted with its key`() async throws {
        let store = try JoinedBrokerStore(environment: ["XDG_STATE_HOME": scratch.path])
        try store.prepare()
        _ = try store.keyFile(of: "lab").loadOrCreate()
        try store.save(broker("lab"))
        try store.save(broker("rack-2", host: "::1", token: "pbg_x"))

        #expect(try store.all.map(\.name) == ["lab", "rack-2"])
        #expect(try store.broker(named: "rack-2").address == .remote(host: "::1", port: 7_283, pin: Self.pin))
        #expect(try store.client(of: store.broker(named: "lab")).address.description == "192.168.1.7:7283")
        let folder = scratch.file("patchbay/brokers")
        for file in ["lab.json", "lab.pem", "rack-2.json"] {
            #expect(PrivateFileSample.mode("\(folder)/\(file)") == 0o600, "\(file)")
        }
        store.delete("lab")
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == ["rack-2.json"])
    }

    @Test func `an unknown name lists the joined brokers`() async throws {
        let store = try JoinedBrokerStore(environment: ["XDG_STATE_HOME": scratch.path])
        let none = #expect(throws: CLIError.self) { try store.broker(named: "lab") }
        #expect(none?.status == .notFound && none?.candidates.isEmpty == true)
        try store.prepare()
        try store.save(broker("rack-2"))
        try store.save(broker("rack-3"))

        let error = #expect(throws: CLIError.self) { try store.broker(named: "lab") }

        #expect(error?.candidates == ["rack-2", "rack-3"] && error?.hint == "patchbay brokers")
    }

    @Test func `a broker without its key is not contacted`() async throws {
        let store = try JoinedBrokerStore(environment: ["XDG_STATE_HOME": scratch.path])
        try store.prepare()
        let error = #expect(throws: CLIError.self) { try store.client(of: broker("lab")) }
        #expect(error?.status == .configuration && error?.hint?.hasPrefix("patchbay leave lab") == true)

        let file = scratch.file("patchbay/brokers/lab.pem")
        _ = try store.keyFile(of: "lab").loadOrCreate()
        chmod(file, 0o640)
        let exposed = #expect(throws: CLIError.self) { try store.client(of: broker("lab")) }
        #expect(exposed?.message.contains("chmod 600") == true)
    }

    @Test func `brokers --nearby says what is missing`() {
        let none = BrokersCommand.noLocalBroker(.brokerNotRunning(path: "/x"))
        #expect(none.status == .notReachable && none.hint?.contains("patchbayd") == true)
        #expect(none.message == "--nearby asks the broker of this machine, and no broker listens at /x")

        let missing = SourceStatus(name: "bonjour", state: .missing, detail: "no Avahi", hint: "start it")
        let failure = BrokersCommand.browsingFailure([missing])
        #expect(failure?.message == "the broker cannot browse the network: no Avahi" && failure?.hint == "start it")
        #expect(BrokersCommand.browsingFailure([SourceStatus(name: "bonjour", state: .ok, detail: "x")]) == nil)
    }

    @Test func `leaving says whether the grant has ended`() {
        let now = PairingSample.grant.expiresAt.addingTimeInterval(-60)

        #expect(LeaveCommand.text("lab", broker("lab").grant, failure: nil, now: now).contains("has ended"))
        let away = LeaveCommand.text("lab", broker("lab").grant, failure: "no broker listens at x", now: now)
        #expect(away.contains("no broker listens at x") && away.contains("patchbay revoke 0a1b2c3d"))
        #expect(
            LeaveCommand.text("lab", broker("lab").grant, failure: "x", now: now.addingTimeInterval(61)).contains(
                "has ended"
            )
        )
    }
}

/// Files for tests.
enum PrivateFileSample {
    /// Returns the permissions of a file, or 0 if there is none.
    ///
    /// Not with stat(2): these tests load Foundation through TLS, and the compiler takes `stat` for a type of
    /// CoreFoundation.
    static func mode(_ path: String) -> Int {
        let attributes = try? FileManager.default.attributesOfItem(atPath: path)
        return attributes?[.posixPermissions] as? Int ?? 0
    }
}

/// Values of pairing for tests.
enum PairingSample {
    static let grant = Grant.sample(
        "0a1b2c3d",
        createdAt: SampleEndpoints.date,
        expiresAt: SampleEndpoints.date.addingTimeInterval(28_800)
    )
}

import AccessControl
import Model
import Samples
import Synchronization
import TestSupport
import Testing

@testable import Apps

/// A phone with scripted users, packages and lines.
private final class FakePhone: PhoneLogSource {
    struct State {
        var ports: [UInt16: UInt32] = [:]
        var packages: [UInt32: SanitizedText] = [:]
        var installed: [String: UInt32] = [:]
        /// The users whose logs were read or followed, in order.
        var read: [UInt32?] = []
        var followed: [UInt32?] = []
    }

    let state = Mutex(State())

    func user(ofPort port: UInt16, on udid: UDID) async throws -> UInt32? { state.withLock { $0.ports[port] } }

    func user(ofPackage package: SanitizedText, on udid: UDID) async throws -> UInt32? {
        state.withLock { $0.installed[package.text] }
    }

    func package(ofUser user: UInt32, on udid: UDID) async throws -> SanitizedText? {
        state.withLock { $0.packages[user] }
    }

    static func line(_ text: String) -> RawPhoneLogLine {
        .sample(text)
    }

    func past(of udid: UDID, user: UInt32?, lines: Int) async throws -> PhoneLogPast {
        state.withLock { $0.read.append(user) }
        return PhoneLogPast(lines: [Self.line("token=abc")], position: PhoneLogPosition())
    }

    func follow(
        _ udid: UDID,
        user: UInt32?,
        from position: PhoneLogPosition,
        _ receive: @escaping @Sendable ([PhoneLogEvent<RawPhoneLogLine>]) -> Void
    ) async throws {
        state.withLock { $0.followed.append(user) }
        receive([.line(Self.line("of \(user ?? 0)"))])
        try await Task.sleep(for: .seconds(3_600))
    }
}

@Suite(.timeLimit(.minutes(1))) struct PhoneLogServiceTests {
    private static let udid: UDID = "android-R58M12ABCDE"
    private let phone = FakePhone()
    private let users = PhoneAppUsers()
    private let audited = Audited()
    private let service: PhoneLogService
    private let grant = Principal.holder(of: "g1", [.endpointCall], on: .all)

    private final class Audited: Sendable {
        let entries = Mutex<[EndpointID?]>([])
    }

    private final class Received: Sendable {
        let events = Mutex<[String]>([])
    }

    init() {
        service = PhoneLogService(phone, users: users, secrets: { [] }) { [audited] id, _, _ in
            audited.entries.withLock { $0.append(id) }
        }
    }

    private func app(
        _ app: String = "com.example.shop",
        port: UInt16? = 4_000,
        kind: EndpointKind = .appreveal
    ) -> Endpoint {
        Endpoint.sample(
            kind: kind,
            app: app,
            location: .init(udid: Self.udid),
            state: port == nil ? .offline : .online,
            routes: port.map { [.usb(Self.udid, port: $0)] } ?? []
        )
    }

    private func set(port: UInt16 = 4_000, user: UInt32 = 10_234, package: String? = "com.example.shop") {
        phone.state.withLock { state in
            state.ports[port] = user
            state.packages[user] = package.map { SanitizedText($0) }
        }
    }

    private func problem(_ endpoint: Endpoint, of principal: Principal) async -> Problem? {
        await #expect(throws: Problem.self) { try await service.open(endpoint, lines: 1, for: principal) }
    }

    @Test func `a grant reads the user that owns the port and has the app's package, without secrets`() async throws {
        set()
        let log = try await service.open(app(), lines: 1, for: grant)

        #expect(log.past.map(\.text.text) == ["token=[removed]"])
        #expect(phone.state.withLock { $0.read } == [10_234])
        #expect(audited.entries.withLock { $0 } == ["shop"])
    }

    @Test(arguments: ["com.example.bank", nil])
    func `a grant reads nothing of another package or of a shared user, and an owner may`(package: String?) async throws
    {
        set(package: package)
        #expect(await problem(app(), of: grant)?.code == .forbidden)
        #expect(phone.state.withLock { $0.read }.isEmpty && audited.entries.withLock { $0 }.isEmpty)
        _ = try await service.open(app(), lines: 1, for: .sampleOwner)
        #expect(phone.state.withLock { $0.read } == [10_234])
    }

    @Test func `the user of an app that has ended is the one that was seen`() async throws {
        phone.state.withLock { $0.installed["com.example.shop"] = 10_777 }
        #expect(await problem(app(port: nil), of: grant)?.code == .unavailable)
        _ = try await service.open(app(port: nil), lines: 1, for: .sampleOwner)

        // A server that names another app is not kept.
        let other = PhonePort(port: 4_000, user: 10_666, app: SanitizedText("com.example.evil"))
        users.observe(other, of: app(), on: Self.udid)
        #expect(await problem(app(port: nil), of: grant)?.code == .unavailable)

        let seen = PhonePort(port: 4_000, user: 10_234, app: SanitizedText("com.example.shop"))
        users.observe(seen, of: app(), on: Self.udid)
        set()
        _ = try await service.open(app(port: nil), lines: 1, for: grant)
        #expect(phone.state.withLock { $0.read } == [10_777, 10_234])
        // The number belongs to another app after this one was removed.
        set(package: "com.example.bank")
        #expect(await problem(app(port: nil), of: grant)?.code == .forbidden)
    }

    @Test func `named tools include no log, and neither do other scopes, iPhones and apps without a phone`()
        async throws
    {
        set()
        let named = Principal.holder(of: "g2", [.endpointCall], on: .all, tools: .named(["tap"]))
        for principal in [named, .holder(of: "g3", [.registryRead], on: .all)] {
            #expect(await problem(app(), of: principal)?.code == .forbidden)
            #expect(!service.hasLog(of: app(), for: principal))
        }
        #expect(service.hasLog(of: app(), for: grant))
        let iPhone = Endpoint.sample(location: .init(udid: .sample))
        #expect(await problem(iPhone, of: grant)?.detail.contains("Android phones only") == true)
        #expect(await problem(Endpoint.sample(), of: grant)?.code == .badRequest)
        let pages = app(port: nil, kind: .web)
        #expect(await problem(pages, of: grant)?.detail.contains("pages") == true)
        await #expect(throws: Problem.self) { try await service.open(Self.udid, lines: 1, for: grant) }
        let off = PhoneLogService(nil, users: users, secrets: { [] }) { _, _, _ in }
        let problem = await #expect(throws: Problem.self) { try await off.open(app(), lines: 1, for: grant) }
        #expect(problem?.detail.contains("devices.read_logs") == true)
    }

    @Test func `a client has a limited number of logs of a phone, and gets places back`() async throws {
        set()
        var logs: [PhoneLog] = []
        for _ in 0..<LogPlaces.limitOfClient { logs.append(try await service.open(app(), lines: 1, for: grant)) }
        #expect(await problem(app(), of: grant)?.code == .limit)
        logs.append(try await service.open(Self.udid, lines: 1, for: .sampleOwner))
        logs = []
        _ = try await service.open(app(), lines: 1, for: grant)
    }

    @Test func `a log goes on with the new user of an app that was installed again`() async throws {
        set()
        let log = try await service.open(app(), lines: 1, for: grant)
        let received = Received()
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                try await log.follow { new in
                    received.events.withLock { events in
                        for event in new {
                            switch event {
                            case .line(let line): events.append(line.text.text)
                            case .note(let text): events.append(text)
                            case .lost: events.append("lost")
                            }
                        }
                    }
                }
            }
            defer { group.cancelAll() }
            try await eventually("the first user's line") { received.events.withLock { $0 } == ["of 10234"] }
            set(user: 10_300)
            let port = PhonePort(port: 4_000, user: 10_300, app: SanitizedText("com.example.shop"))
            users.observe(port, of: app(), on: Self.udid)
            try await eventually("the second user's line") {
                received.events.withLock { $0 } == ["of 10234", "com.example.shop was installed again", "of 10300"]
            }
            set(user: 10_400, package: "com.example.bank")
            let stolen = PhonePort(port: 4_000, user: 10_400, app: SanitizedText("com.example.shop"))
            users.observe(stolen, of: app(), on: Self.udid)
            await #expect(throws: Problem.self) { try await group.next() }
        }
        #expect(phone.state.withLock { $0.followed } == [10_234, 10_300])
    }
}

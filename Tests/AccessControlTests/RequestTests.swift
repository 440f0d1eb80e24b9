import FoundationEssentials
import Model
import Synchronization
import TestSupport
import Testing

@testable import AccessControl

@Suite(.scratchFolder) struct RequestTests {
    private let scratch = ScratchFolder.current
    private static let agent = AuditActor.process(uid: 1_001, pid: 77, executable: SanitizedText("/usr/bin/agent"))
    private static let source = RequestSource.unix(uid: 1_001)
    private static let spec = AccessRequestSpec(name: SanitizedText("agent"), permissions: Fixture.reader)

    private func poll(
        _ store: AccessStore,
        _ handle: Token,
        from source: RequestSource = source
    ) async throws -> AccessRequestService.State {
        let poll = AccessRequestPoll(deviceCode: handle.reveal(), client: String(repeating: "7", count: 32))
        return try await store.requests.poll(poll, by: Self.agent, from: source)
    }

    @Test func `an approval gives a grant to the requester only`() async throws {
        let clock = TestClock()
        let store = try Fixture.store(in: scratch, clock: clock)
        let (request, handle) = try await store.requests.create(Self.spec, by: Self.agent)
        #expect(request.userCode.wholeMatch(of: /[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}/) != nil)
        clock.pass(5)
        guard case .waiting = try await poll(store, handle) else {
            Issue.record("it does not wait")
            return
        }
        // In lower case and with a space, as a person may type it.
        let typed = request.userCode.lowercased().replacing("-", with: " ")
        let approved = try await store.requests.approve(typed)
        #expect(approved.requester == Self.agent)
        await #expect(throws: AccessError.refused) { try await poll(store, handle, from: .unix(uid: 1_002)) }

        guard case .granted(let grant, let token) = try await poll(store, handle),
            case .granted(_, let again) = try await poll(store, handle)
        else {
            Issue.record("nothing is granted")
            return
        }
        #expect(grant.binding == .user(1_001) && grant.permissions == Fixture.reader)
        #expect(token.reveal() == again.reveal())
        _ = try await store.grants.authenticate(token, from: Self.source)
        #expect(await store.requests.pending.isEmpty)
        let events = try Fixture.audit(in: scratch).map(\.event)
        #expect(events.contains { $0.action == .approved && $0.who == Fixture.owner })
        #expect(events.filter { $0.action == .redeemed }.map(\.who) == [Self.agent])
    }

    @Test func `a denial is reported once, and an ended request is unknown`() async throws {
        let clock = TestClock()
        let store = try Fixture.store(in: scratch, clock: clock)
        let (request, handle) = try await store.requests.create(Self.spec, by: Self.agent)
        _ = try await store.requests.deny(request.userCode)
        guard case .denied = try await poll(store, handle) else {
            Issue.record("it is not denied")
            return
        }
        let (late, lateHandle) = try await store.requests.create(Self.spec, by: Self.agent)
        clock.pass(300)
        await #expect(throws: AccessError.self) { try await store.requests.approve(late.userCode) }
        for handle in [handle, lateHandle] {
            await #expect(throws: AccessError.refused) { try await poll(store, handle) }
        }
    }

    @Test func `polling too early increases the interval each time`() async throws {
        let clock = TestClock()
        let store = try Fixture.store(in: scratch, clock: clock)
        let (_, handle) = try await store.requests.create(Self.spec, by: Self.agent)
        clock.pass(1)
        await #expect(throws: AccessError.slowDown(seconds: 10)) { try await poll(store, handle) }
        clock.pass(6)
        await #expect(throws: AccessError.slowDown(seconds: 15)) { try await poll(store, handle) }
        clock.pass(15)
        _ = try await poll(store, handle)
    }

    @Test func `one user can have eight pending requests, and other users can still request`() async throws {
        let store = try Fixture.store(in: scratch)
        for _ in 0..<500 { _ = try? await store.requests.create(Self.spec, by: Self.agent) }
        #expect(await store.requests.pending.count == 8)
        _ = try await store.requests.create(Self.spec, by: .process(uid: 5, pid: 1, executable: SanitizedText("x")))
        #expect(await store.requests.pending.count == 9)
    }

    @Test func `a request whose process has ended is not listed, and leaves room for another one`() async throws {
        let store = try Fixture.store(in: scratch)
        for _ in 0..<20 {
            _ = try await store.requests.create(Self.spec, by: Self.agent, isRunning: { false })
        }
        #expect(await store.requests.pending.isEmpty)
        let (request, _) = try await store.requests.create(Self.spec, by: Self.agent)
        #expect(await store.requests.pending == [request])
    }

    @Test func `twenty wrong codes close requests, even across restarts`() async throws {
        let clock = TestClock()
        var store = try Fixture.store(in: scratch, clock: clock)
        let wrong = ["0BCDFGHJ", "OBCDFGHJ", "ABCDFGHJ", "BCDFGHJ", "", "BCDF-GHJKL", "ВCDF-GHJK"]
        for number in 0..<19 {
            await #expect(throws: AccessError.self) { try await store.requests.approve(wrong[number % wrong.count]) }
        }
        try await store.close()
        store = try Fixture.store(in: scratch, clock: clock)
        _ = try await store.requests.create(Self.spec, by: Self.agent)
        await #expect(throws: AccessError.self) { try await store.requests.approve("BBBB-BBBB") }
        await #expect(throws: AccessError.requestsClosed) { try await store.requests.create(Self.spec, by: Self.agent) }
        try await store.close()
        store = try Fixture.store(in: scratch, clock: clock)
        await #expect(throws: AccessError.requestsClosed) { try await store.requests.create(Self.spec, by: Self.agent) }

        try await store.requests.unlock()
        _ = try await store.requests.create(Self.spec, by: Self.agent)
    }

    @Test func `an approval is rejected when the requesting process has exited`() async throws {
        let store = try Fixture.store(in: scratch)
        let isRunning = Atomic(true)
        let (request, _) = try await store.requests.create(Self.spec, by: Self.agent) {
            isRunning.load(ordering: .sequentiallyConsistent)
        }
        isRunning.store(false, ordering: .sequentiallyConsistent)
        await #expect(throws: AccessError.requesterExited(code: request.userCode)) {
            try await store.requests.approve(request.userCode)
        }
    }

    @Test func `a user code is never written to the disk`() async throws {
        let store = try Fixture.store(in: scratch)
        let (request, handle) = try await store.requests.create(Self.spec, by: Self.agent)
        _ = try await store.requests.approve(request.userCode)
        _ = try await poll(store, handle)
        try await store.close()
        #expect(try scratch.filesHolding(request.userCode).isEmpty)
        #expect(try scratch.filesHolding(request.userCode.replacing("-", with: "")).isEmpty)
    }
}

extension ScratchFolder {
    /// Returns the files that contain a text.
    func filesHolding(_ text: String) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: path).filter {
            try Data(contentsOf: URL(filePath: file($0))).firstRange(of: Data(text.utf8)) != nil
        }
    }
}

import FoundationEssentials
import Model
import TestSupport
import Synchronization
import Testing

@testable import AccessControl

@Suite struct RequestTests {
    private static let agent = AuditActor.process(uid: 1_001, pid: 77, executable: SanitizedText("/usr/bin/agent"))
    private static let door = RequestSource.unix(uid: 1_001)
    private static let key = Data(repeating: 7, count: 32)
    private static let terms = AccessTerms(Bench.reader, name: SanitizedText("agent"))

    private func poll(_ store: AccessStore, _ handle: Token) async throws -> AccessStore.RequestState {
        try await store.poll(handle, client: Self.key, name: SanitizedText("agent"), from: Self.door)
    }

    @Test func `a person's yes gives the asker a grant of its own, and only to it`() async throws {
        try await withScratchFolder { scratch in
            let clock = TestClock()
            let store = try Bench.store(in: scratch, clock: clock)
            let (request, handle) = try await store.request(Self.terms, by: Self.agent)
            #expect(request.code.wholeMatch(of: /[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}/) != nil)
            clock.pass(5)
            guard case .waiting = try await poll(store, handle) else {
                Issue.record("it does not wait")
                return
            }
            // Typed as people type.
            let typed = request.code.lowercased().replacing("-", with: " ")
            let approved = try await store.approve(typed, by: Bench.owner, from: Bench.socket)
            #expect(approved.asker == Self.agent)
            await #expect(throws: AccessError.refused) {
                try await store.poll(handle, client: Self.key, name: SanitizedText("x"), from: .unix(uid: 1_002))
            }

            guard case .granted(let grant, let token) = try await poll(store, handle),
                case .granted(_, let again) = try await poll(store, handle)
            else {
                Issue.record("nothing is granted")
                return
            }
            #expect(grant.binding == .user(1_001) && grant.permissions == Bench.reader)
            #expect(token.reveal() == again.reveal())
            _ = try await store.authenticate(token, from: Self.door)
            #expect(await store.requests.isEmpty)
            #expect(
                try Bench.audit(in: scratch).contains { $0.event.action == .approved && $0.event.who == Bench.owner }
            )
        }
    }

    @Test func `a person's no is told once, and what is over is unknown`() async throws {
        try await withScratchFolder { scratch in
            let clock = TestClock()
            let store = try Bench.store(in: scratch, clock: clock)
            let (request, handle) = try await store.request(Self.terms, by: Self.agent)
            _ = try await store.deny(request.code, by: Bench.owner, from: Bench.socket)
            guard case .denied = try await poll(store, handle) else {
                Issue.record("it is not denied")
                return
            }
            let (late, lateHandle) = try await store.request(Self.terms, by: Self.agent)
            clock.pass(300)
            await #expect(throws: AccessError.self) {
                try await store.approve(late.code, by: Bench.owner, from: Bench.socket)
            }
            for handle in [handle, lateHandle] {
                await #expect(throws: AccessError.refused) { try await poll(store, handle) }
            }
        }
    }

    @Test func `who asks too often has to wait longer each time`() async throws {
        try await withScratchFolder { scratch in
            let clock = TestClock()
            let store = try Bench.store(in: scratch, clock: clock)
            let (_, handle) = try await store.request(Self.terms, by: Self.agent)
            clock.pass(1)
            await #expect(throws: AccessError.slowDown(seconds: 10)) { try await poll(store, handle) }
            clock.pass(6)
            await #expect(throws: AccessError.slowDown(seconds: 15)) { try await poll(store, handle) }
            clock.pass(15)
            _ = try await poll(store, handle)
        }
    }

    @Test func `five hundred requests of one user are eight, and others can still ask`() async throws {
        try await withScratchFolder { scratch in
            let store = try Bench.store(in: scratch)
            for _ in 0..<500 { _ = try? await store.request(Self.terms, by: Self.agent) }
            #expect(await store.requests.count == 8)
            _ = try await store.request(Self.terms, by: .process(uid: 5, pid: 1, executable: SanitizedText("x")))
            #expect(await store.requests.count == 9)
        }
    }

    @Test func `wrong codes count, close the requests after twenty, and stay counted through a restart`() async throws {
        try await withScratchFolder { scratch in
            let clock = TestClock()
            var store = try Bench.store(in: scratch, clock: clock)
            let wrong = ["0BCDFGHJ", "OBCDFGHJ", "ABCDFGHJ", "BCDFGHJ", "", "BCDF-GHJKL", "ВCDF-GHJK"]
            for number in 0..<19 {
                await #expect(throws: AccessError.self) {
                    try await store.approve(wrong[number % wrong.count], by: Bench.owner, from: Bench.socket)
                }
            }
            try await store.close()
            store = try Bench.store(in: scratch, clock: clock)
            _ = try await store.request(Self.terms, by: Self.agent)
            await #expect(throws: AccessError.self) {
                try await store.approve("BBBB-BBBB", by: Bench.owner, from: Bench.socket)
            }
            await #expect(throws: AccessError.requestsClosed) { try await store.request(Self.terms, by: Self.agent) }
            try await store.close()
            store = try Bench.store(in: scratch, clock: clock)
            await #expect(throws: AccessError.requestsClosed) { try await store.request(Self.terms, by: Self.agent) }

            try await store.reopenRequests()
            _ = try await store.request(Self.terms, by: Self.agent)
        }
    }

    @Test func `the yes is refused when the process that asked has ended`() async throws {
        try await withScratchFolder { scratch in
            let store = try Bench.store(in: scratch)
            let isRunning = Atomic(true)
            let (request, _) = try await store.request(Self.terms, by: Self.agent) {
                isRunning.load(ordering: .sequentiallyConsistent)
            }
            isRunning.store(false, ordering: .sequentiallyConsistent)
            await #expect(throws: AccessError.askerGone(code: request.code)) {
                try await store.approve(request.code, by: Bench.owner, from: Bench.socket)
            }
        }
    }

    @Test func `a code is never written to the disk`() async throws {
        try await withScratchFolder { scratch in
            let store = try Bench.store(in: scratch)
            let (request, handle) = try await store.request(Self.terms, by: Self.agent)
            _ = try await store.approve(request.code, by: Bench.owner, from: Bench.socket)
            _ = try await poll(store, handle)
            try await store.close()
            #expect(try scratch.filesHolding(request.code).isEmpty)
            #expect(try scratch.filesHolding(request.code.replacing("-", with: "")).isEmpty)
        }
    }
}

extension ScratchFolder {
    /// The files in which a text stands as it is.
    func filesHolding(_ text: String) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: path).filter {
            try Data(contentsOf: URL(filePath: file($0))).firstRange(of: Data(text.utf8)) != nil
        }
    }
}

import AccessControl
import Model
import Samples
import SystemIO
import Testing

@testable import Apps

@Suite struct FairQueueTests {
    @Test func `one holder gets a part of the permits, and another does not wait for it`() {
        var queue = FairQueue<Int>(permits: 3, perHolderLimit: 2, queueLimit: 2)

        let acquired = ["a", "a", "a", "b", "c"].map { queue.acquire($0) }

        #expect(acquired == [true, true, false, true, false])
    }

    @Test func `waiting holders take turns, and the requests of one holder keep their order`() {
        var queue = FairQueue<Int>(permits: 1, perHolderLimit: 1, queueLimit: 9)
        _ = queue.acquire("z")
        for (one, holder) in [(1, "a"), (2, "a"), (3, "a"), (4, "b"), (5, "c"), (6, "b")] {
            queue.enqueue(one, for: holder)
        }

        var admitted: [Int] = []
        queue.release("z")
        while let (one, holder) = queue.next() {
            admitted.append(one)
            let isMore = queue.next() != nil
            #expect(!isMore)
            queue.release(holder)
        }

        #expect(admitted == [1, 4, 5, 2, 6, 3])
        #expect(queue.active.isEmpty)
    }

    @Test func `a permit skips holders that are at their limit`() {
        var queue = FairQueue<Int>(permits: 3, perHolderLimit: 2, queueLimit: 2)
        for holder in ["a", "a", "b"] { _ = queue.acquire(holder) }
        queue.enqueue(1, for: "a")
        queue.enqueue(2, for: "c")

        queue.release("b")
        let next = [queue.next()?.0, queue.next()?.0]

        #expect(next == [2, nil])
    }

    @Test func `each holder has its own queue`() {
        var queue = FairQueue<Int>(permits: 3, perHolderLimit: 2, queueLimit: 2)
        queue.enqueue(1, for: "a")
        queue.enqueue(2, for: "a")

        #expect(queue.isFull(for: "a"))
        #expect(!queue.isFull(for: "b"))
    }

    @Test func `a removed request is not admitted`() {
        var queue = FairQueue<Int>(permits: 3, perHolderLimit: 2, queueLimit: 2)
        queue.enqueue(1, for: "a")
        queue.enqueue(2, for: "b")

        queue.remove("a") { $0 == 1 }
        let next = [queue.next()?.0, queue.next()?.0]

        #expect(next == [2, nil])
    }

    @Test func `a turn that was granted before the grant ended is used, and its permit is not lost`() async throws {
        let admission = DeliveryAuthorization(
            [],
            of: .holder(of: "ended", []),
            by: EndedGrants(),
            since: 0,
            limit: .seconds(60)
        )
        let (granted, queued) = (Promise<Void>(), Promise<Void>())
        granted.complete(.success(()))

        try await admission.wait(for: granted, clock: PollerClock())

        await #expect(throws: CancellationError.self) { try await admission.wait(for: queued, clock: PollerClock()) }
        // The queue skips the turn of a request that has given up.
        #expect(!queued.complete(.success(())))
    }
}

/// An authorizer whose grants have all ended.
private struct EndedGrants: EndpointAuthorizer {
    let generation: UInt64 = 1
    func observe(_ endpoint: Endpoint) async {}
    func recordAcceptance(of secret: EndpointSecret, by endpoint: Endpoint, over routes: [AuthorizedRoute]) {}
    func access(to endpoint: Endpoint, for principal: Principal) async -> AuthorizedRoutes { AuthorizedRoutes([]) }
    func isLive(_ principal: Principal) -> Bool { false }
    func deliver<Value: Sendable, Failure: Error>(
        for principal: Principal,
        since generation: UInt64,
        _ write: () throws(Failure) -> Value
    ) throws(Failure) -> Value? { nil }
    func register(for principal: Principal, onRevoke: @escaping @Sendable () -> Void) throws -> GrantSession? {
        throw CancellationError()
    }
    func unregister(_ session: GrantSession) {}
    func recordSecretResult(for endpoint: Endpoint, accepted: Bool) async {}
    func storeExchangedSecret(_ secret: EndpointSecret, of endpoint: Endpoint) async throws {}
    func audit(_ event: EndpointCallEvent, by principal: Principal) async {}
    func changes() async -> AsyncStream<EndpointID> { AsyncStream { $0.finish() } }
}

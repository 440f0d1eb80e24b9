import Model
import Samples
import Synchronization
import SystemIO
import Testing

@testable import Apps

@Suite(.timeLimit(.minutes(1))) struct EndpointTasksTests {
    private let shop: EndpointID
    private let bank: EndpointID
    private let tasks = EndpointTasks()

    private final class Ended: Sendable {
        let flag = Mutex(false)
    }

    init() throws {
        shop = EndpointID("shop")
        bank = EndpointID("bank")
    }

    @Test func `the end of the access ends the calls of this endpoint before it returns, and no other call`()
        async throws
    {
        let (gate, begun, ended) = (Promise<Void>(), [AsyncLatch(), AsyncLatch()], Ended())
        try await withThrowingTaskGroup(of: String.self) { group in
            group.addTask { [tasks, shop] in
                do {
                    try await tasks.run(at: shop) {
                        defer { ended.flag.withLock { $0 = true } }
                        begun[0].open()
                        try await Promise<Void>().value()
                    }
                } catch AppError.accessEnded { return "ended" }
                return "returned"
            }
            group.addTask { [tasks, bank] in
                try await tasks.run(at: bank) {
                    begun[1].open()
                    try await gate.value()
                    return "answered"
                }
            }
            for latch in begun { await latch.wait() }

            await tasks.cancelAll(of: shop)

            #expect(ended.flag.withLock { $0 })
            let first = try await group.next()
            gate.complete(.success(()))
            let second = try await group.next()
            #expect(first == "ended" && second == "answered")
        }
    }

    @Test func `a client that gives up is no end of the access`() async throws {
        let begun = AsyncLatch()
        await #expect(throws: CancellationError.self) {
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { [tasks, shop] in
                    try await tasks.run(at: shop) {
                        begun.open()
                        try await Promise<Void>().value()
                    }
                }
                await begun.wait()
                group.cancelAll()
                try await group.waitForAll()
            }
        }
        await tasks.cancelAll(of: shop)
    }
}

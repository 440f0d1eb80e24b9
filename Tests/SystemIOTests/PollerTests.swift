import CLinux
import Glibc
import Synchronization
import Testing

@testable import SystemIO

@Suite(.timeLimit(.minutes(1)))
struct PollerTests {
    /// Two connected unix sockets, closed on deallocation.
    private final class Pair: Sendable {
        let one: CInt
        let other: CInt

        init() {
            var numbers: [CInt] = [0, 0]
            precondition(socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0, &numbers) == 0)
            (one, other) = (numbers[0], numbers[1])
        }

        deinit {
            close(one)
            close(other)
        }
    }

    @Test func `readiness ends a wait`() async throws {
        let pair = Pair()

        async let waited: Void = Poller.shared.wait(for: .readable, of: pair.one)
        write(pair.other, "x", 1)

        try await waited
        try await Poller.shared.wait(for: .writable, of: pair.one)
    }

    @Test func `a close is a hang-up, a half-close is not`() async throws {
        let pair = Pair()
        shutdown(pair.other, CInt(SHUT_WR))
        let early = try await withTimeout(.milliseconds(30), clock: ContinuousClock()) {
            try await Poller.shared.wait(for: .hungUp, of: pair.one)
            return true
        }
        #expect(early == nil)

        shutdown(pair.other, CInt(SHUT_RDWR))

        try await Poller.shared.wait(for: .hungUp, of: pair.one)
    }

    @Test func `a wait with a deadline ends at the deadline and unregisters the descriptor`() async throws {
        let pair = Pair()
        let start = MonotonicInstant.now

        #expect(try await !Poller.shared.wait(for: .readable, of: pair.one, until: start + .milliseconds(30)))

        #expect(MonotonicInstant.now - start >= .milliseconds(30))
        write(pair.other, "x", 1)
        #expect(try await Poller.shared.wait(for: .readable, of: pair.one, until: .now + .seconds(30)))
    }

    @Test func `waits that end before their deadline do not accumulate timers`() async throws {
        let pair = Pair()
        for _ in 0..<1_000 {
            #expect(try await Poller.shared.wait(for: .writable, of: pair.one, until: .now + .seconds(3_600)))
        }

        #expect(Poller.shared.waiters.withLock { $0.timers.count } < 500)
    }

    @Test func `cancellation ends a wait with a deadline`() async throws {
        let pair = Pair()

        await withThrowingTaskGroup(of: Bool.self) { group in
            group.addTask { try await Poller.shared.wait(for: .readable, of: pair.one, until: .now + .seconds(3_600)) }
            group.cancelAll()
            await #expect(throws: CancellationError.self) { try await group.next() }
        }
    }

    @Test func `a second wait for a descriptor fails, and the first continues`() async throws {
        let pair = Pair()
        try await withThrowingTaskGroup(of: Result<Void, any Error>.self) { group in
            for _ in 0..<2 {
                group.addTask {
                    do { return .success(try await Poller.shared.wait(for: .readable, of: pair.one)) } catch {
                        return .failure(error)
                    }
                }
            }
            let refused = try await group.next()
            #expect(throws: SocketError.self) { try refused?.get() }
            #expect(write(pair.other, "x", 1) == 1)
            let first = try await group.next()
            #expect(throws: Never.self) { try first?.get() }
        }
        withExtendedLifetime(pair) {}
    }

    @Test func `a wait for a closed descriptor number fails`() async throws {
        await #expect(throws: SocketError.self) { try await Poller.shared.wait(for: .readable, of: 1_000_000) }
    }

    @Test func `a cancelled task does not wait`() async throws {
        let pair = Pair()

        await withThrowingTaskGroup(of: Void.self) { group in
            group.cancelAll()
            group.addTask { try await Poller.shared.wait(for: .readable, of: pair.one) }
            await #expect(throws: CancellationError.self) { try await group.next() }
        }
    }

    @Test func `a descriptor can be closed and its number reused directly after every kind of wait`()
        async throws
    {
        // Each round races the cancellation against the start of the wait and against readiness. A registration left in
        // the kernel would make the next round's wait fail (EEXIST) or wake the wrong wait.
        for round in 0..<2_000 {
            let pair = Pair()
            await withTaskGroup(of: Void.self) { group in
                group.addTask { try? await Poller.shared.wait(for: .readable, of: pair.one) }
                if round % 3 != 0 { write(pair.other, "x", 1) }
                if round % 2 == 0 { await Task.yield() }
                if round % 3 != 1 { group.cancelAll() }
            }
            try await Poller.shared.wait(for: .writable, of: pair.one)
            withExtendedLifetime(pair) {}
        }
    }
}

import Model
import Samples
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import Team

/// Requests to a host whose entries end.
@Suite(.timeLimit(.minutes(1))) struct HostPresenceTests {
    private let presence = HostPresence()
    private let lab2: HostName
    private let lab3: HostName

    init() throws {
        lab2 = HostName("lab2")
        lab3 = HostName("lab3")
    }

    @Test func `a request that waits for a host ends when the entries of that host do`() async throws {
        let (begun, continuation) = AsyncStream.makeStream(of: Void.self)
        let request = Task { [presence, lab2] in
            try await presence.whilePresent(lab2) { () async throws -> Int in
                continuation.yield()
                // Only a cancellation ends this.
                return try await Promise<Int>().value()
            }
        }
        for await _ in begun { break }

        presence.reportEnd(of: lab3)
        presence.reportEnd(of: lab2)

        #expect(try await request.value == nil)
    }

    @Test func `a request that ends before is not affected, and leaves nothing behind`() async throws {
        let ran = Mutex(0)
        #expect(try await presence.whilePresent(lab2) { 7 } == 7)
        let cancelled = presence.onEnd(of: lab2) { ran.withLock { $0 += 1 } }
        _ = presence.onEnd(of: lab2) { ran.withLock { $0 += 10 } }
        presence.cancel(cancelled)

        presence.reportEnd(of: lab2)
        presence.reportEnd(of: lab2)

        #expect(ran.withLock { $0 } == 10)
    }

    @Test func `a phone keeps the host that listed it last`() throws {
        let phones = LastPhoneHosts()
        let udid: UDID = "00008101-000123456789ABCD"
        #expect(phones.host(of: udid) == nil)

        phones.record(udid, on: lab2)
        phones.record(udid, on: lab3)

        #expect(phones.host(of: udid) == lab3)
    }
}

import Devices
import Glibc
import Logging
import Model
import TestSupport
import SystemIO
import Testing
import Tunnels

@testable import UsbmuxServer

@Suite(.timeLimit(.minutes(1))) struct UsbmuxServerServiceTests {
    /// A dialer that never connects and reports when its dial is cancelled.
    private final class SilentDialer: Dialer {
        let begun = AsyncStream.makeStream(of: Void.self)
        let ended = AsyncStream.makeStream(of: Void.self)

        func dial(_ route: Route) async throws -> Connection {
            begun.continuation.yield()
            defer { ended.continuation.yield() }
            try await Task.sleep(for: .seconds(600))
            throw DialError(.timedOut, "the test has ended")
        }
    }

    private static func isServed(_ socket: CInt) async throws -> Bool {
        guard ServerFixture.send(Samples.request("ListDevices"), over: socket) else { return false }
        return try await !ServerFixture.receive(over: socket).isEmpty
    }

    @Test func `a client above the limit is disconnected, others are served, and a freed place is reusable`()
        async throws
    {
        try await ServerFixture.running(dialer: SilentDialer(), clientLimit: 2) { _, address in
            let one = try await ServerFixture.connect(to: address)
            #expect(try await Self.isServed(one.number))
            do {
                let two = try await ServerFixture.connect(to: address)
                #expect(try await Self.isServed(two.number))
                let three = try await ServerFixture.connect(to: address)
                #expect(try await !Self.isServed(three.number))
                #expect(try await Self.isServed(two.number))
            }
            try await eventually("a place is free") {
                let next = try await ServerFixture.connect(to: address)
                return try await Self.isServed(next.number)
            }
            #expect(try await Self.isServed(one.number))
        }
    }

    @Test func `a client disconnect cancels its dial`() async throws {
        let dialer = SilentDialer()
        try await ServerFixture.running(dialer: dialer, devices: [try Samples.device(Samples.one)]) { _, address in
            do {
                let client = try await ServerFixture.connect(to: address)
                // Retries until the device is listed.
                try await eventually("the dial begins") {
                    _ = ServerFixture.send(
                        Samples.connect("<integer>1</integer>", "<integer>22</integer>"),
                        over: client.number
                    )
                    let answer = try await withTimeout(.milliseconds(50), clock: ContinuousClock()) {
                        [number = client.number] in
                        try await ServerFixture.receive(over: number)
                    }
                    return answer == nil
                }
                for await _ in dialer.begun.stream { break }
            }

            for await _ in dialer.ended.stream { break }
        }
    }

    @Test func `a listener that sends a request is disconnected`() async throws {
        try await ServerFixture.running(dialer: SilentDialer()) { _, address in
            let client = try await ServerFixture.connect(to: address)
            #expect(ServerFixture.send(Samples.request("Listen"), over: client.number))
            #expect(try await !ServerFixture.receive(over: client.number).isEmpty)

            #expect(ServerFixture.send(Samples.request("ListDevices"), over: client.number))

            #expect(try await ServerFixture.receive(over: client.number).isEmpty)
        }
    }
}

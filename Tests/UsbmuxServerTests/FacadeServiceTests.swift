import Devices
import Glibc
import Logging
import Model
import TestSupport
import SystemIO
import Testing
import Tunnels

@testable import UsbmuxServer

@Suite(.timeLimit(.minutes(1))) struct FacadeServiceTests {
    /// Never gets through, and says when it was given up.
    private final class SilentDialer: Dialer {
        let begun = AsyncStream.makeStream(of: Void.self)
        let ended = AsyncStream.makeStream(of: Void.self)

        func dial(_ route: Route) async throws -> Connection {
            begun.continuation.yield()
            defer { ended.continuation.yield() }
            try await Task.sleep(for: .seconds(600))
            throw DialError(.timedOut, "nobody waits so long")
        }
    }

    private static func isServed(_ socket: CInt) async throws -> Bool {
        guard FacadeBench.send(Samples.request("ListDevices"), over: socket) else { return false }
        return try await !FacadeBench.receive(over: socket).isEmpty
    }

    @Test func `one client too many is hung up on, the others are served, and a place is good again`() async throws {
        try await FacadeBench.running(dialer: SilentDialer(), clientLimit: 2) { _, address in
            let one = try await FacadeBench.connect(to: address)
            #expect(try await Self.isServed(one.number))
            do {
                let two = try await FacadeBench.connect(to: address)
                #expect(try await Self.isServed(two.number))
                let three = try await FacadeBench.connect(to: address)
                #expect(try await !Self.isServed(three.number))
                #expect(try await Self.isServed(two.number))
            }
            try await eventually("a place is free") {
                let next = try await FacadeBench.connect(to: address)
                return try await Self.isServed(next.number)
            }
            #expect(try await Self.isServed(one.number))
        }
    }

    @Test func `a client that goes away ends its dial`() async throws {
        let dialer = SilentDialer()
        try await FacadeBench.running(dialer: dialer, phones: [try Samples.device(Samples.one)]) { _, address in
            do {
                let client = try await FacadeBench.connect(to: address)
                // Until the phone is there.
                try await eventually("the dial begins") {
                    _ = FacadeBench.send(
                        Samples.connect("<integer>1</integer>", "<integer>22</integer>"),
                        over: client.number
                    )
                    let answer = try await withDeadline(.milliseconds(50), clock: ContinuousClock()) {
                        [number = client.number] in
                        try await FacadeBench.receive(over: number)
                    }
                    return answer == nil
                }
                for await _ in dialer.begun.stream { break }
            }

            for await _ in dialer.ended.stream { break }
        }
    }

    @Test func `a listener that says a word is hung up on`() async throws {
        try await FacadeBench.running(dialer: SilentDialer()) { _, address in
            let client = try await FacadeBench.connect(to: address)
            #expect(FacadeBench.send(Samples.request("Listen"), over: client.number))
            #expect(try await !FacadeBench.receive(over: client.number).isEmpty)

            #expect(FacadeBench.send(Samples.request("ListDevices"), over: client.number))

            #expect(try await FacadeBench.receive(over: client.number).isEmpty)
        }
    }
}

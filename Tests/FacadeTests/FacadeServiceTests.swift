import Devices
import Glibc
import Logging
import Model
import Rig
import Sockets
import Testing
import Tunnels

@testable import Facade

@Suite(.timeLimit(.minutes(1))) struct FacadeServiceTests {
    /// Never gets through, and says when it was given up.
    private final class SilentDialer: Dialer {
        let begun = AsyncStream.makeStream(of: Void.self)
        let ended = AsyncStream.makeStream(of: Void.self)

        func dial(_ route: Route) async throws -> Carrier {
            begun.continuation.yield()
            defer { ended.continuation.yield() }
            try await Task.sleep(for: .seconds(600))
            throw DialFailure(.timedOut, "nobody waits so long")
        }
    }

    /// Gives the body the address of a facade that runs meanwhile; usbmuxd is away.
    private static func withFacade(
        dialer: any Dialer = SilentDialer(),
        clientLimit: Int = 10,
        phones: [Device] = [],
        _ body: (SocketAddress) async throws -> Void
    ) async throws {
        try await withScratchFolder { scratch in
            let address = SocketAddress.unix(path: scratch.file("mux"))
            let (stream, teller) = AsyncStream.makeStream(of: [Device].self)
            teller.yield(phones)
            let relay = RelayLoop()
            let facade = Facade(
                on: try Listener(on: address),
                phones: stream,
                dialer: dialer,
                usbmuxd: NativeUsbmuxClient(address: .unix(path: scratch.file("usbmuxd"))),
                relay: relay,
                clientLimit: clientLimit,
                logger: Logger(label: "test")
            )
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await facade.run() }
                try await body(address)
                group.cancelAll()
            }
            await relay.stop()
        }
    }

    private static func connect(to address: SocketAddress) async throws -> Descriptor {
        try await address.connect(within: .seconds(5), clock: ContinuousClock())
    }

    private static func send(_ bytes: [UInt8], over socket: CInt) -> Bool {
        Glibc.send(socket, bytes, bytes.count, CInt(MSG_NOSIGNAL)) == bytes.count
    }

    /// What comes next; nothing at the end.
    private static func receive(over socket: CInt) async throws -> [UInt8] {
        try await Poller.shared.wait(for: .readable, of: socket)
        var buffer = [UInt8](repeating: 0, count: 65_536)
        return Array(buffer[..<max(0, recv(socket, &buffer, buffer.count, 0))])
    }

    private static func isServed(_ socket: CInt) async throws -> Bool {
        guard send(Samples.request("ListDevices"), over: socket) else { return false }
        return try await !receive(over: socket).isEmpty
    }

    @Test func `one client too many is hung up on, the others are served, and a place is good again`() async throws {
        try await Self.withFacade(clientLimit: 2) { address in
            let one = try await Self.connect(to: address)
            #expect(try await Self.isServed(one.number))
            do {
                let two = try await Self.connect(to: address)
                #expect(try await Self.isServed(two.number))
                let three = try await Self.connect(to: address)
                #expect(try await !Self.isServed(three.number))
                #expect(try await Self.isServed(two.number))
            }
            try await eventually("a place is free") {
                let next = try await Self.connect(to: address)
                return try await Self.isServed(next.number)
            }
            #expect(try await Self.isServed(one.number))
        }
    }

    @Test func `a client that goes away ends its dial`() async throws {
        let dialer = SilentDialer()
        try await Self.withFacade(dialer: dialer, phones: [try Samples.device(Samples.one)]) { address in
            do {
                let client = try await Self.connect(to: address)
                // Until the phone is there.
                try await eventually("the dial begins") {
                    _ = Self.send(Samples.connect("<integer>1</integer>", "<integer>22</integer>"), over: client.number)
                    let answer = try await withDeadline(.milliseconds(50), clock: ContinuousClock()) {
                        [number = client.number] in
                        try await Self.receive(over: number)
                    }
                    return answer == nil
                }
                for await _ in dialer.begun.stream { break }
            }

            for await _ in dialer.ended.stream { break }
        }
    }

    @Test func `a listener that says a word is hung up on`() async throws {
        try await Self.withFacade { address in
            let client = try await Self.connect(to: address)
            #expect(Self.send(Samples.request("Listen"), over: client.number))
            #expect(try await !Self.receive(over: client.number).isEmpty)

            #expect(Self.send(Samples.request("ListDevices"), over: client.number))

            #expect(try await Self.receive(over: client.number).isEmpty)
        }
    }
}

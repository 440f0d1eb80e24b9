import Glibc
import Model
import TestSupport
import SystemIO
import Testing

@testable import UsbmuxServer

/// The end of streams that the server handed to the relay.
@Suite(.timeLimit(.minutes(1))) struct UsbmuxServerStreamTests {
    /// A link checker with a fixed result.
    private struct FixedLinkChecker: LinkChecker {
        let isWayThere: Bool

        func check(_ answer: @escaping @Sendable (Bool) -> Void) { answer(isWayThere) }
    }

    /// Gives each dial one end of a socket pair, and the test, which acts as the device, the other end.
    private final class PairDialer: Dialer {
        let device = AsyncStream.makeStream(of: CInt.self)
        private let linkChecker: FixedLinkChecker

        init(_ linkChecker: FixedLinkChecker) { self.linkChecker = linkChecker }

        func dial(_ route: Route) async throws -> Connection {
            var numbers: [CInt] = [-1, -1]
            let kind = CInt(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
            guard socketpair(AF_UNIX, kind, 0, &numbers) == 0 else { throw TestSupportError(call: "socketpair") }
            device.continuation.yield(numbers[1])
            return Connection(descriptor: Descriptor(owning: numbers[0]), halfClose: .destroys).checked(by: linkChecker)
        }
    }

    @Test(arguments: [(true, 0), (false, 1)])
    func `a stream that lost its device is counted as cut, and one that its app ended is not`(
        isWayThere: Bool,
        cut: Int
    ) async throws {
        let dialer = PairDialer(FixedLinkChecker(isWayThere: isWayThere))
        let device = try Samples.device(Samples.one)
        try await ServerFixture.running(dialer: dialer, devices: [device]) { server, address in
            let client = try await ServerFixture.connect(to: address)
            let connect = Samples.connect(Samples.integer(1), Samples.integer(22))
            try await eventually("the phone is listed, and there is a stream") {
                guard ServerFixture.send(connect, over: client.number) else { throw TestSupportError(call: "send") }
                return try Samples.result(await ServerFixture.receive(over: client.number))?.code == 0
            }
            // The response is sent before the stream is counted.
            try await eventually("the stream is counted") { server.status().detail.contains(", 1 streams") }

            for await number in dialer.device.stream {
                let device = Descriptor(owning: number)
                #expect(ServerFixture.send([1, 2, 3], over: device.number))
                break
            }

            #expect(try await ServerFixture.receive(over: client.number) == [1, 2, 3])
            #expect(try await ServerFixture.receive(over: client.number).isEmpty)
            try await eventually("the stream is over") { server.status().detail.contains(" 0 streams") }
            #expect(server.status().detail.hasSuffix(", \(cut) cut"))
        }
    }
}

import Glibc
import Model
import TestSupport
import SystemIO
import Testing

@testable import UsbmuxServer

/// What becomes of a stream after the facade has handed it to the relay.
@Suite(.timeLimit(.minutes(1))) struct FacadeStreamTests {
    /// Knows beforehand what it will say.
    private struct Witness: LinkChecker {
        let isWayThere: Bool

        func ask(_ answer: @escaping @Sendable (Bool) -> Void) { answer(isWayThere) }
    }

    /// Gives each dial one end of a new channel, and the test, which is the phone, the other one.
    private final class PairDialer: Dialer {
        let phone = AsyncStream.makeStream(of: CInt.self)
        private let witness: Witness

        init(_ witness: Witness) { self.witness = witness }

        func dial(_ route: Route) async throws -> Connection {
            var numbers: [CInt] = [-1, -1]
            let kind = CInt(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
            guard socketpair(AF_UNIX, kind, 0, &numbers) == 0 else { throw RigError(call: "socketpair") }
            phone.continuation.yield(numbers[1])
            return Connection(descriptor: Descriptor(owning: numbers[0]), halfClose: .destroys).witnessed(by: witness)
        }
    }

    @Test(arguments: [(true, 0), (false, 1)])
    func `a stream that lost its phone is counted as cut, one that its app ended is not`(
        isWayThere: Bool,
        cut: Int
    ) async throws {
        let dialer = PairDialer(Witness(isWayThere: isWayThere))
        let phone = try Samples.device(Samples.one)
        try await FacadeBench.running(dialer: dialer, phones: [phone]) { facade, address in
            let client = try await FacadeBench.connect(to: address)
            let connect = Samples.connect(Samples.integer(1), Samples.integer(22))
            try await eventually("the phone is listed, and there is a stream") {
                guard FacadeBench.send(connect, over: client.number) else { throw RigError(call: "send") }
                return try Samples.result(await FacadeBench.receive(over: client.number))?.code == 0
            }
            // The answer is on its way before the stream is counted.
            try await eventually("the stream is counted") { facade.status().detail.contains(", 1 streams") }

            for await number in dialer.phone.stream {
                let phone = Descriptor(owning: number)
                #expect(FacadeBench.send([1, 2, 3], over: phone.number))
                break
            }

            #expect(try await FacadeBench.receive(over: client.number) == [1, 2, 3])
            #expect(try await FacadeBench.receive(over: client.number).isEmpty)
            try await eventually("the stream is over") { facade.status().detail.contains(" 0 streams") }
            #expect(facade.status().detail.hasSuffix(", \(cut) cut"))
        }
    }
}

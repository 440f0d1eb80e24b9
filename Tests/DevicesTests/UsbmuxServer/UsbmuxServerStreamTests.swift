import Model
import SystemIO
import TestSupport
import Testing

@testable import Devices

/// The end of streams that the server handed to the relay.
@Suite(.timeLimit(.minutes(1))) struct UsbmuxServerStreamTests {
    @Test(arguments: [(true, 0), (false, 1)])
    func `a stream that lost its device is counted as cut, and one that its app ended is not`(
        isReachable: Bool,
        cut: Int
    ) async throws {
        let dialer = FakeDialer.connected(halfClose: .destroys) { $0(isReachable) }
        let device = try ServerFixture.device(Phones.one)
        try await ServerFixture.running(dialer: dialer, devices: [device]) { server, address in
            let client = try await SocketStream.connect(to: address)
            let connect = MuxMessage.connect(MuxMessage.integer(1), MuxMessage.integer(22))
            try await eventually("the phone is listed, and there is a stream") {
                try await client.send(connect)
                return try MuxResult(await ServerFixture.receive(from: client))?.code == 0
            }
            // The response is sent before the stream is counted.
            try await eventually("the stream is counted") { server.status().detail.contains(", 1 streams") }

            for await device in dialer.peers {
                try await device.send([1, 2, 3])
                break
            }

            #expect(try await ServerFixture.receive(from: client) == [1, 2, 3])
            #expect(try await ServerFixture.receive(from: client).isEmpty)
            try await eventually("the stream is over") { server.status().detail.contains(" 0 streams") }
            #expect(server.status().detail.hasSuffix(", \(cut) cut"))
        }
    }
}

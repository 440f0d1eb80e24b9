import Glibc
import SystemIO

/// TCP clients of ports on 127.0.0.1. Each has its own thread, so that many can wait at once.
package enum LoopbackClient {
    /// Connects, runs the body, and closes.
    ///
    /// `receiveBuffer` limits the bytes that the kernel buffers while the body does not read.
    /// - Returns: The result of the body, or nil if the connection is refused.
    package static func talk<Value: Sendable>(
        to port: UInt16,
        within limit: Duration,
        receiveBuffer: CInt? = nil,
        _ body: @escaping @Sendable (PatternPeer) -> Value
    ) async -> Value? {
        await withCheckedContinuation { continuation in
            startThread(named: "rig-client") {
                continuation.resume(returning: connected(to: port, within: limit, receiveBuffer, body))
            }
        }
    }

    /// Sends `count` bytes of the pattern to an echo server. Returns true if all of them return within the limit.
    package static func echoes(_ count: Int = 1000, from port: UInt16, within limit: Duration) async -> Bool {
        let received = await talk(to: port, within: limit) { peer in
            _ = peer.send(0..<count)
            return peer.receive(count)
        }
        return received == PatternPeer.Received(count: count)
    }

    private static func connected<Value>(
        to port: UInt16,
        within limit: Duration,
        _ receiveBuffer: CInt?,
        _ body: (PatternPeer) -> Value
    ) -> Value? {
        let address = SocketAddress.ipv4(INADDR_LOOPBACK, port: port)
        do {
            let stream = try BlockingStream.connect(to: address, receiveBuffer: receiveBuffer)
            let value = body(PatternPeer(stream.number, deadline: .now + limit))
            _ = consume stream
            return value
        } catch { return nil }
    }
}

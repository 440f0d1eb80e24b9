import CLinux
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
                guard let socket = connect(to: port, receiveBuffer) else { return continuation.resume(returning: nil) }
                let value = body(PatternPeer(socket.number, deadline: .now + limit))
                _ = consume socket
                continuation.resume(returning: value)
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

    private static func connect(to port: UInt16, _ receiveBuffer: CInt?) -> Descriptor? {
        let number = socket(AF_INET, CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard number >= 0 else { return nil }
        let socket = Descriptor(owning: number)
        if var size = receiveBuffer {
            setsockopt(number, SOL_SOCKET, SO_RCVBUF, &size, socklen_t(MemoryLayout<CInt>.size))
        }
        var name = sockaddr_in()
        name.sin_family = sa_family_t(AF_INET)
        name.sin_port = port.bigEndian
        name.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        let isConnected = withUnsafePointer(to: &name) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.connect(number, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
        guard isConnected else { return nil }
        return socket
    }
}

import CLinux
import Glibc
import SystemIO

/// A TCP client of a port on 127.0.0.1, each on a thread of its own, so that many can wait at once.
package enum LoopbackClient {
    /// Connects, lets the body talk, and closes.
    ///
    /// `receiveBuffer` bounds what the kernel takes from the other side while the body does not read.
    /// - Returns: What the body returns; nil when nobody listens there.
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

    /// Sends so much of the pattern to an echo server and says whether it came back within the limit, all of it.
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

import CLinux
import Glibc
package import Model

/// An app that echoes its input and closes after the client's end of stream.
package final class EchoServer: Sendable {
    private let address: String
    private let server: LoopbackServer

    /// Listens on the port; 0 selects a free one. Without a folder the test itself stops the server.
    package init(address: String = "127.0.0.1", port: UInt16 = 0, in scratch: ScratchFolder? = nil) throws {
        self.address = address
        server = try LoopbackServer(address: address, port: port, in: scratch) { connection in
            var buffer = [UInt8](repeating: 0, count: 65536)
            while true {
                let count = recv(connection, &buffer, buffer.count, 0)
                guard count > 0, BlockingStream.send(buffer[..<count], to: connection) else { return }
            }
        }
    }

    package var port: UInt16 { server.port }
    package var route: Route { .network(NetworkRoute(address: address, port: port)) }

    package func stop() { server.stop() }
}

import Glibc
import SystemIO
import TestSupport

/// The address at which a client reaches one app.
enum AppAddress: Hashable, Sendable {
    /// A port of this machine.
    case tcp(UInt16)
    /// usbmuxd's socket, on which the client sends a Connect to the phone's port.
    case mux(path: String, port: UInt16)

    /// Connects. Each blocking call on the stream waits at most for `timeout`.
    func open(timeout: Duration = .seconds(5)) throws -> BlockingStream {
        let stream = try BlockingStream.connect(to: socketAddress)
        SocketOption.setNoDelay(stream.number)
        stream.limit(timeout)
        if case .mux(_, let port) = self {
            try stream.send(MuxMessage.connect(1, port))
            let header = try stream.receive(MuxMessage.headerSize)
            let answer = try stream.receive(MuxMessage.length(of: header) - MuxMessage.headerSize)
            guard MuxMessage.number("Number", in: answer) == 0 else { throw BlockingStream.Failure.ended }
        }
        return stream
    }

    /// Starts a non-blocking connect.
    func start() throws -> Descriptor {
        let socket = try socketAddress.makeSocket()
        let result = try socketAddress.withRaw { connect(socket.number, $0, $1) }
        guard result == 0 || errno == EINPROGRESS else { throw TestSupportError(call: "connect to \(socketAddress)") }
        SocketOption.setNoDelay(socket.number)
        return socket
    }

    private var socketAddress: SocketAddress {
        switch self {
        case .tcp(let port): .ipv4(0x7F00_0001, port: port)
        case .mux(let path, _): .unix(path: path)
        }
    }
}

import Glibc
import TestSupport
import SystemIO

/// Where a client knocks to reach one app.
enum Door: Hashable, Sendable {
    /// A port of this machine.
    case tcp(UInt16)
    /// usbmuxd's socket: ask for the port of the phone first.
    case mux(path: String, port: UInt16)

    /// Connects, and waits no longer than `patience` at a time, then and later.
    func open(patience: Duration = .seconds(5)) throws -> ByteStream {
        let socket = try address.makeSocket()
        let stream: ByteStream
        switch self {
        case .tcp:
            try knock(socket.number)
            stream = ByteStream(over: socket)
            stream.limit(patience)
        case .mux(_, let port):
            try knock(socket.number)
            stream = ByteStream(over: socket)
            stream.limit(patience)
            try stream.send(MuxMessage.connect(port: port))
            let header = try stream.receive(MuxMessage.headerSize)
            let answer = try stream.receive(MuxMessage.length(of: header) - MuxMessage.headerSize)
            guard MuxMessage.number("Number", in: answer) == 0 else { throw BenchError.ended }
        }
        return stream
    }

    /// Begins to connect and returns at once; non-blocking.
    func start() throws -> Descriptor {
        let socket = try address.makeSocket()
        let result = try address.withRaw { connect(socket.number, $0, $1) }
        guard result == 0 || errno == EINPROGRESS else { throw RigError(call: "connect to \(address)") }
        SocketOption.setNoDelay(socket.number)
        return socket
    }

    private var address: SocketAddress {
        switch self {
        case .tcp(let port): .ipv4(0x7F00_0001, port: port)
        case .mux(let path, _): .unix(path: path)
        }
    }

    private func knock(_ number: CInt) throws {
        _ = fcntl(number, F_SETFL, 0)
        let result = try address.withRaw { connect(number, $0, $1) }
        guard result == 0 else { throw BenchError.failed(call: "connect", words: SocketError.words(for: errno)) }
    }
}

import Glibc
import Model

/// Copies standard input to a socket and the socket to standard output, with one thread for each direction.
///
/// Uses blocking calls. Standard input can be a regular file, which epoll(7) does not support. Standard input must not be
/// made non-blocking, because a terminal is shared with the shell.
///
/// The end of standard input becomes a half-close; the other direction continues until the other side closes.
struct StdioRelay {
    enum Ending: Sendable, Equatable {
        /// The other side closed, and all received bytes are written.
        case finished
        /// The other side reset the connection.
        case reset
        /// The reader closed standard output.
        case outputClosed
    }

    var input = STDIN_FILENO
    var output = STDOUT_FILENO

    private static let chunk = 64 << 10

    /// Relays until the other side closes.
    ///
    /// - Parameter socket: A connected socket. It is not closed, because the input thread may block until the process ends.
    /// - Returns: The reason of the end.
    func run(over socket: CInt) async -> Ending {
        let (input, output) = (input, output)
        BlockingThread.start {
            _ = Self.copy(from: input, to: socket)
            shutdown(socket, CInt(SHUT_WR))
        }
        return await BlockingThread.value { Self.copy(from: socket, to: output) }
    }

    /// Connects to a local IPv4 address.
    ///
    /// - Throws: `CLIError` if the connection fails.
    static func connect(to address: ListenAddress) throws(CLIError) -> CInt {
        guard case .tcp(let host?, let port) = address else {
            throw CLIError(status: .error, message: "the broker listens on \(address), which is not an IPv4 address")
        }
        var name = sockaddr_in()
        name.sin_family = sa_family_t(AF_INET)
        name.sin_port = port.bigEndian
        let descriptor = socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
        let connected =
            inet_pton(AF_INET, host, &name.sin_addr) == 1 && descriptor >= 0
            && withUnsafePointer(to: &name) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                    Glibc.connect(descriptor, pointer, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
                }
            }
        guard connected else {
            throw CLIError.temporary("cannot connect to \(address): errno \(errno)", try: "patchbay doctor")
        }
        return descriptor
    }

    private static func copy(from source: CInt, to target: CInt) -> Ending {
        var buffer = [UInt8](repeating: 0, count: chunk)
        while true {
            let count = read(source, &buffer, chunk)
            if count == 0 { return .finished }
            if count < 0 {
                guard BlockingThread.shouldRetry(source, POLLIN) else { return .reset }
                continue
            }
            guard BlockingThread.write(Array(buffer[..<count]), to: target) else { return .outputClosed }
        }
    }
}

import Glibc
import Model

/// Copies standard input to a socket and the socket to standard output, each on a thread of its own.
///
/// Threads and blocking calls, because standard input may be a regular file, which epoll(7) does not take, and must not
/// be made non-blocking: a terminal is shared with the shell.
///
/// The end of standard input is passed on as a half-close and ends nothing else: the reply is read to its own end.
struct StdioRelay {
    enum Ending: Sendable, Equatable {
        /// The other side closed, and everything that it sent is written.
        case finished
        /// The other side broke off.
        case reset
        /// Whoever read standard output is gone.
        case outputClosed
    }

    var input = STDIN_FILENO
    var output = STDOUT_FILENO

    private static let chunk = 64 << 10

    /// - Parameter socket: Connected; it stays open, because the input's thread may sit in a read until the process ends.
    /// - Returns: How the other side ended it.
    func run(over socket: CInt) async -> Ending {
        let (input, output) = (input, output)
        BlockingThread.start {
            _ = Self.copy(from: input, to: socket)
            shutdown(socket, CInt(SHUT_WR))
        }
        return await BlockingThread.value { Self.copy(from: socket, to: output) }
    }

    /// - Throws: `CLIError`.
    static func connect(to address: ListenAddress) throws(CLIError) -> CInt {
        guard case .tcp(let host?, let port) = address else {
            throw CLIError(status: .error, message: "the broker listens on \(address), which is no IPv4 address")
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
            throw CLIError(
                status: .temporary,
                message: "\(address) did not take the connection: errno \(errno)",
                remedy: "patchbay doctor"
            )
        }
        return descriptor
    }

    private static func copy(from source: CInt, to target: CInt) -> Ending {
        var buffer = [UInt8](repeating: 0, count: chunk)
        while true {
            let count = read(source, &buffer, chunk)
            if count == 0 { return .finished }
            if count < 0 {
                guard BlockingThread.isPassing(source, POLLIN) else { return .reset }
                continue
            }
            guard BlockingThread.write(Array(buffer[..<count]), to: target) else { return .outputClosed }
        }
    }
}

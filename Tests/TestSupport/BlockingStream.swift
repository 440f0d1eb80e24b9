import CLinux
import Glibc
package import SystemIO

/// A connected blocking socket for one thread. `SocketStream` is the one for tasks.
package struct BlockingStream: ~Copyable, Sendable {
    package enum Failure: Error, Hashable {
        /// No byte was transferred within the timeout.
        case hung
        /// The other side closed too early.
        case ended
        /// The received bytes differ from the expected ones.
        case garbled
        case failed(call: String, words: String)
    }

    private let descriptor: Descriptor

    /// Makes the descriptor blocking.
    package init(over descriptor: consuming Descriptor) {
        _ = fcntl(descriptor.number, F_SETFL, 0)
        self.descriptor = descriptor
    }

    package var number: CInt { descriptor.number }

    /// Connects to an address.
    ///
    /// `receiveBuffer` limits the bytes that the kernel buffers while nobody reads. Without `waits`, a full backlog of
    /// a unix socket is an error, as for libusbmuxd.
    package static func connect(
        to address: SocketAddress,
        receiveBuffer: CInt? = nil,
        waits: Bool = true
    ) throws -> BlockingStream {
        let socket = try address.makeSocket()
        if waits { _ = fcntl(socket.number, F_SETFL, 0) }
        if var size = receiveBuffer {
            setsockopt(socket.number, SOL_SOCKET, SO_RCVBUF, &size, socklen_t(MemoryLayout<CInt>.size))
        }
        guard try address.withRaw({ Glibc.connect(socket.number, $0, $1) }) == 0 else {
            throw Failure.failed(call: "connect", words: SocketError.message(for: errno))
        }
        return BlockingStream(over: socket)
    }

    /// Sets the timeout of later calls, so that a hang becomes a failure.
    package func limit(_ timeout: Duration) {
        let (seconds, rest) = timeout.components
        var limit = timeval(tv_sec: Int(seconds), tv_usec: Int(rest / 1_000_000_000_000))
        let size = socklen_t(MemoryLayout<timeval>.size)
        setsockopt(number, SOL_SOCKET, SO_RCVTIMEO, &limit, size)
        setsockopt(number, SOL_SOCKET, SO_SNDTIMEO, &limit, size)
    }

    package func send(_ bytes: [UInt8]) throws { try bytes.withUnsafeBytes { try send($0) } }

    package func send(_ bytes: UnsafeRawBufferPointer) throws {
        guard Self.send(bytes, to: number) else { throw Self.failure("send") }
    }

    /// Half-closes the stream.
    package func finish() { shutdown(number, CInt(SHUT_WR)) }

    /// Receives exactly `count` bytes.
    package func receive(_ count: Int) throws -> [UInt8] {
        let bytes = try receive(upTo: count, resetIsEnd: false)
        guard bytes.count == count else { throw Failure.ended }
        return bytes
    }

    /// Receives `count` bytes, or fewer at the end of the stream.
    package func receive(upTo count: Int, resetIsEnd: Bool = true) throws -> [UInt8] {
        try [UInt8](unsafeUninitializedCapacity: max(count, 0)) { space, filled in
            while filled < count {
                let got = recv(number, space.baseAddress.unsafelyUnwrapped + filled, count - filled, 0)
                if got < 0, errno == EINTR { continue }
                if got == 0 || got < 0 && resetIsEnd && errno == ECONNRESET { return }
                guard got > 0 else { throw Self.failure("recv") }
                filled += got
            }
        }
    }

    /// Receives the available bytes, at least one.
    package func receive(into space: UnsafeMutableRawBufferPointer) throws -> Int {
        while true {
            let count = recv(number, space.baseAddress, space.count, 0)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw Self.failure("recv") }
            guard count > 0 else { throw Failure.ended }
            return count
        }
    }

    /// Sends all bytes over a blocking socket.
    ///
    /// - Returns: False with `errno` if the other side has closed.
    package static func send(_ bytes: ArraySlice<UInt8>, to socket: CInt) -> Bool {
        bytes.withUnsafeBytes { send($0, to: socket) }
    }

    private static func send(_ bytes: UnsafeRawBufferPointer, to socket: CInt) -> Bool {
        var sent = 0
        while sent < bytes.count {
            let rest = UnsafeRawBufferPointer(rebasing: bytes[sent...])
            let count = Glibc.send(socket, rest.baseAddress, rest.count, CInt(MSG_NOSIGNAL))
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return false }
            sent += count
        }
        return true
    }

    private static func failure(_ call: String) -> Failure {
        errno == EAGAIN ? .hung : .failed(call: call, words: SocketError.message(for: errno))
    }
}

extension BlockingStream.Failure: CustomStringConvertible {
    package var description: String {
        switch self {
        case .hung: "hangs"
        case .ended: "closed too early"
        case .garbled: "other bytes came than were sent"
        case .failed(let call, let words): "\(call): \(words)"
        }
    }
}

import Glibc
import TestSupport
import SystemIO

/// A connected blocking socket for one thread.
struct ByteStream: ~Copyable {
    private static let chunk = 256 << 10

    private let descriptor: Descriptor

    /// Makes the descriptor blocking.
    init(over descriptor: consuming Descriptor) {
        _ = fcntl(descriptor.number, F_SETFL, 0)
        SocketOption.setNoDelay(descriptor.number)
        self.descriptor = descriptor
    }

    /// Sets the timeout of later calls, so that a hanging forwarder becomes a result.
    func limit(_ timeout: Duration) {
        let (seconds, rest) = timeout.components
        var limit = timeval(tv_sec: Int(seconds), tv_usec: Int(rest / 1_000_000_000_000))
        let size = socklen_t(MemoryLayout<timeval>.size)
        setsockopt(descriptor.number, SOL_SOCKET, SO_RCVTIMEO, &limit, size)
        setsockopt(descriptor.number, SOL_SOCKET, SO_SNDTIMEO, &limit, size)
    }

    func send(_ bytes: [UInt8]) throws {
        try bytes.withUnsafeBytes { try send($0) }
    }

    /// Receives exactly `count` bytes.
    func receive(_ count: Int) throws -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        try bytes.withUnsafeMutableBytes { space in
            var filled = 0
            while filled < count {
                filled += try receive(into: UnsafeMutableRawBufferPointer(rebasing: space[filled...]))
            }
        }
        return bytes
    }

    /// Sends the bytes of a transfer request.
    func give(_ request: TransferRequest) throws {
        var block = [UInt8](repeating: 0, count: Self.chunk)
        var sent = 0
        while sent < request.length {
            let count = min(Self.chunk, request.length - sent)
            if request.isPattern { block = Pattern.bytes(sent..<sent + count) }
            try block.withUnsafeBytes { try send(UnsafeRawBufferPointer(rebasing: $0[..<count])) }
            sent += count
        }
    }

    /// Receives the bytes of a transfer request.
    ///
    /// - Returns: False if the bytes differ from the requested pattern.
    func take(_ request: TransferRequest) throws -> Bool {
        let space = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.chunk, alignment: 4_096)
        defer { space.deallocate() }
        var received = 0
        var isRight = true
        while received < request.length {
            let room = UnsafeMutableRawBufferPointer(rebasing: space[..<min(Self.chunk, request.length - received)])
            let count = try receive(into: room)
            if request.isPattern, !Pattern.matches(room[..<count], from: received) { isRight = false }
            received += count
        }
        return isRight
    }

    private func send(_ bytes: UnsafeRawBufferPointer) throws {
        var sent = 0
        while sent < bytes.count {
            let rest = UnsafeRawBufferPointer(rebasing: bytes[sent...])
            let count = Glibc.send(descriptor.number, rest.baseAddress, rest.count, CInt(MSG_NOSIGNAL))
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw Self.failure("send") }
            sent += count
        }
    }

    private func receive(into space: UnsafeMutableRawBufferPointer) throws -> Int {
        while true {
            let count = recv(descriptor.number, space.baseAddress, space.count, 0)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw Self.failure("recv") }
            guard count > 0 else { throw BenchError.ended }
            return count
        }
    }

    private static func failure(_ call: String) -> BenchError {
        errno == EAGAIN ? .hung : .failed(call: call, words: SocketError.message(for: errno))
    }
}

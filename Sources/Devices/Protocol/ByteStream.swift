import Glibc
import SystemIO

/// Sends and receives bytes over a connected, non-blocking socket. The caller owns the socket.
package struct ByteStream: Sendable {
    package enum Failure: Error, Hashable {
        /// The peer closed or reset the connection.
        case closed
        case failed(call: String, errno: CInt)
    }

    private let number: CInt
    private let peer: String

    /// `peer` names the other end in failures.
    package init(over number: CInt, to peer: String) { (self.number, self.peer) = (number, peer) }

    /// Receives the available bytes: at least one, and at most `limit`.
    ///
    /// - Throws: `Failure`; `CancellationError`.
    package func receive(atMost limit: Int) async throws -> [UInt8] {
        while true {
            var failure: CInt = 0
            let bytes = [UInt8](unsafeUninitializedCapacity: limit) { buffer, count in
                let received = recv(number, buffer.baseAddress, limit, 0)
                count = max(0, received)
                if received < 0 { failure = errno }
            }
            switch failure {
            case 0 where bytes.isEmpty, ECONNRESET, EPIPE: throw Failure.closed
            case 0: return bytes
            case EAGAIN: try await Poller.shared.wait(for: .readable, of: number)
            case EINTR: continue
            default: throw Failure.failed(call: "reading from \(peer)", errno: failure)
            }
        }
    }

    /// Receives `count` bytes.
    ///
    /// - Throws: `Failure`; `CancellationError`.
    package func receive(exactly count: Int) async throws -> [UInt8] {
        var bytes: [UInt8] = []
        while bytes.count < count { bytes += try await receive(atMost: min(count - bytes.count, 64 << 10)) }
        return bytes
    }

    /// Sends all bytes.
    ///
    /// - Throws: `Failure`; `CancellationError`.
    package func send(_ bytes: [UInt8]) async throws {
        var rest = bytes[...]
        while !rest.isEmpty {
            let sent = rest.withUnsafeBytes {
                Glibc.send(number, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL))
            }
            if sent >= 0 {
                rest = rest.dropFirst(sent)
                continue
            }
            switch errno {
            case EAGAIN: try await Poller.shared.wait(for: .writable, of: number)
            case EINTR: continue
            case EPIPE, ECONNRESET: throw Failure.closed
            default: throw Failure.failed(call: "writing to \(peer)", errno: errno)
            }
        }
    }
}

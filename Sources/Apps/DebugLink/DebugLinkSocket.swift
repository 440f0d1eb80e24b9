import Glibc
package import SystemIO

/// Opens a connection to another debugger.
package typealias DebuggerDial = @Sendable () async throws -> Connection

/// A connected stream that one task reads while another one writes.
final class DebugLinkSocket: Sendable {
    /// The size of one read in bytes. Large reads need fewer system calls for a picture of megabytes.
    private static let readSize = 256 * 1_024

    private let reader: Descriptor
    /// A duplicate, because the poller supports one wait for each descriptor.
    private let writer: Descriptor
    /// A permit of a connection limit, kept until the close.
    private let permit: (any Sendable)?
    private let clock: any Clock<Duration>

    /// Takes ownership of a connected, non-blocking socket.
    ///
    /// - Parameters:
    ///   - socket: The socket.
    ///   - permit: A value to retain until the close.
    ///   - clock: Measures the time limit of writes.
    /// - Throws: `SocketError`.
    init(_ socket: consuming Descriptor, permit: (any Sendable)? = nil, clock: any Clock<Duration>) throws {
        let copy = fcntl(socket.number, F_DUPFD_CLOEXEC, 0)
        guard copy >= 0 else { throw SocketError.failed(call: "fcntl", on: "a debugger connection", code: errno) }
        writer = Descriptor(owning: copy)
        reader = socket
        self.permit = permit
        self.clock = clock
    }

    /// Ends the stream for the tasks that use it, and for the peer.
    func close() { shutdown(reader.number, CInt(SHUT_RDWR)) }

    /// Returns whether the peer is a port of this machine.
    func leadsToPort(_ port: UInt16?) -> Bool {
        let (local, peer) = (SocketAddress.local(of: reader.number), SocketAddress.peer(of: reader.number))
        return peer != nil && peer?.port == port && peer?.host == local?.host
    }

    /// The number of sent bytes that the peer has not acknowledged.
    var unacknowledgedBytes: Int { SocketOption.unsent(by: writer.number) }

    /// Reads the next bytes; empty at the end of the stream.
    ///
    /// - Throws: `DebugLinkError.connectionFailed`, `SocketError`, `CancellationError`.
    func receive() async throws -> [UInt8] { try await receive(within: nil) ?? [] }

    /// Reads the next bytes; empty at the end of the stream, nil if none arrived within the time limit.
    ///
    /// - Throws: `DebugLinkError.connectionFailed`, `SocketError`, `CancellationError`.
    func receive(within limit: Duration?) async throws -> [UInt8]? {
        while true {
            // A peer that always sends never makes the poller wait, which checks for cancellation otherwise.
            try Task.checkCancellation()
            var code: CInt = 0
            let bytes = [UInt8](unsafeUninitializedCapacity: Self.readSize) { buffer, count in
                let received = recv(reader.number, buffer.baseAddress, buffer.count, 0)
                if received < 0 { code = errno }
                count = max(0, received)
            }
            switch code {
            case 0: return bytes
            case EINTR: continue
            case EAGAIN:
                guard let limit else {
                    try await Poller.shared.wait(for: .readable, of: reader.number)
                    continue
                }
                guard try await Poller.shared.wait(for: .readable, of: reader.number, atMost: limit, by: clock) else {
                    return nil
                }
            default: throw DebugLinkError.connectionFailed(SocketError.message(for: code))
            }
        }
    }

    /// Writes bytes, and removes the written ones from `bytes`. The time limit applies to each wait for the peer.
    ///
    /// - Throws: `DebugLinkError.notTaken`, `.connectionFailed`, `SocketError`, `CancellationError`.
    func send(_ bytes: inout ArraySlice<UInt8>, stallLimit: Duration) async throws {
        let number = writer.number
        while !bytes.isEmpty {
            let count = bytes.withUnsafeBytes { Glibc.send(number, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL)) }
            if count >= 0 {
                bytes = bytes.dropFirst(count)
                continue
            }
            switch errno {
            case EINTR: continue
            case EAGAIN:
                guard try await Poller.shared.wait(for: .writable, of: number, atMost: stallLimit, by: clock) else {
                    throw DebugLinkError.notTaken(seconds: Int(stallLimit.components.seconds))
                }
            case let code: throw DebugLinkError.connectionFailed(SocketError.message(for: code))
            }
        }
    }
}

import Glibc
import Model
import SystemIO

/// A connection to an app that carries one request after another.
final class UpstreamConnection: Sendable {
    /// The reason why a read or write failed.
    enum Failure: Error, Hashable, Sendable {
        /// The kernel did not accept all bytes. No server acts on an incomplete request.
        case unwritten
        case broken
    }

    private static let readSize = 64 * 1_024
    /// The number of bytes at the end of a message that are written atomically with the permission check.
    private static let finalBytes = 16 * 1_024

    let route: Route
    private let connection: Connection

    /// Wraps a connection.
    init(over route: Route, _ connection: consuming Connection) {
        self.route = route
        self.connection = connection
    }

    /// Ends the connection in both directions. A reader then gets the end of the stream.
    func abort() { shutdown(connection.descriptor.number, CInt(SHUT_RDWR)) }

    /// Returns when the kernel has accepted all bytes.
    ///
    /// - Throws: `Failure.unwritten`, `AppError`, `CancellationError`.
    func send(
        _ bytes: [UInt8],
        by admission: DeliveryAuthorization? = nil,
        within limit: Duration,
        clock: any Clock<Duration>
    ) async throws {
        let watch = ElapsedTimer(clock)
        var rest = bytes[...]
        while !rest.isEmpty {
            let left = limit - watch.elapsed
            rest = rest.dropFirst(try await sendSome(rest, by: admission, within: left, clock: clock))
        }
    }

    /// Sends a request. A server may reject a request by its head, answer, and close before the body is written.
    ///
    /// - Returns: The begin of such an early response; nil if the kernel has accepted the whole request.
    /// - Throws: `AppError.unwritten` and the other errors of `send`.
    func sendRequest(
        _ bytes: [UInt8],
        by admission: DeliveryAuthorization?,
        within limit: Duration,
        clock: any Clock<Duration>
    ) async throws -> [UInt8]? {
        do {
            try await send(bytes, by: admission, within: limit, clock: clock)
            return nil
        } catch Failure.unwritten {
            guard let early = try? receiveNow(), !early.isEmpty else { throw AppError.unwritten }
            return early
        }
    }

    /// Writes some bytes and returns their number. The bytes that complete a message are written only while the
    /// permission is valid.
    ///
    /// - Throws: `Failure.unwritten`, `AppError.permissionChanged`, `AppError.noHandshake`,
    ///   `CancellationError`; no bytes were written.
    func sendSome(
        _ bytes: ArraySlice<UInt8>,
        by admission: DeliveryAuthorization? = nil,
        within limit: Duration,
        clock: any Clock<Duration>
    ) async throws -> Int {
        let number = connection.descriptor.number
        while true {
            let (count, code) = try write(bytes, by: admission)
            if count >= 0 { return count }
            if code == EAGAIN {
                // The poller supports one wait per descriptor, and a reader may be waiting on this one.
                let copy = Descriptor(owning: fcntl(number, F_DUPFD_CLOEXEC, 0))
                guard copy.number >= 0 else { throw Failure.unwritten }
                guard
                    limit > .zero,
                    try await Poller.shared.wait(for: .writable, of: copy.number, atMost: limit, by: clock)
                else { throw AppError.noHandshake(seconds: Int(limit.components.seconds)) }
            } else if code != EINTR {
                throw Failure.unwritten
            }
        }
    }

    private func write(
        _ bytes: ArraySlice<UInt8>,
        by admission: DeliveryAuthorization?
    ) throws(AppError) -> (count: Int, code: CInt) {
        let number = connection.descriptor.number
        func send(_ bytes: ArraySlice<UInt8>) -> (count: Int, code: CInt) {
            let count = bytes.withUnsafeBytes { Glibc.send(number, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL)) }
            return (count, count < 0 ? errno : 0)
        }
        guard let admission else { return send(bytes) }
        // No server acts on an incomplete request. All but the final bytes of a large one are therefore written without
        // the permission lock.
        guard bytes.count <= Self.finalBytes else { return send(bytes.dropLast(Self.finalBytes)) }
        guard let sent = admission.deliver({ send(bytes) }) else { throw .permissionChanged }
        return sent
    }

    /// Reads the next bytes without a timeout; empty at the end of the stream.
    ///
    /// - Throws: `Failure.broken`, `CancellationError`.
    func receive() async throws -> [UInt8] {
        while true {
            if let bytes = try receiveNow() { return bytes }
            try await Poller.shared.wait(for: .readable, of: connection.descriptor.number)
        }
    }

    /// Reads the next bytes; nil after the timeout, empty at the end of the stream.
    ///
    /// - Throws: `Failure.broken`, `CancellationError`.
    func receive(within limit: Duration, clock: any Clock<Duration>) async throws -> [UInt8]? {
        while true {
            if let bytes = try receiveNow() { return bytes }
            let number = connection.descriptor.number
            guard try await Poller.shared.wait(for: .readable, of: number, atMost: limit, by: clock) else { return nil }
        }
    }

    /// Reads available bytes; nil if there are none, empty at the end of the stream.
    func receiveNow() throws(Failure) -> [UInt8]? {
        let number = connection.descriptor.number
        var code: CInt = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: Self.readSize) { buffer, count in
            var result = recv(number, buffer.baseAddress, buffer.count, 0)
            while result < 0, errno == EINTR { result = recv(number, buffer.baseAddress, buffer.count, 0) }
            if result < 0 { code = errno }
            count = max(0, result)
        }
        guard code != 0 else { return bytes }
        guard code == EAGAIN else { throw .broken }
        return nil
    }
}

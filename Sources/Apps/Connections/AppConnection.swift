import Glibc
package import Model
package import SystemIO

/// A connection to an app that carries one message after another.
package final class AppConnection: Sendable {
    /// Runs the write that completes a message. Returns nil without a write if the message is not permitted any more.
    package typealias Permission = @Sendable (_ write: () -> Int) -> Int?

    private static let readSize = 64 * 1_024
    /// The number of bytes at the end of a message that are written atomically with the permission check.
    private static let finalBytes = 16 * 1_024

    package let route: Route
    private let connection: Connection

    /// Wraps a connection.
    package init(over route: Route, _ connection: consuming Connection) {
        self.route = route
        self.connection = connection
    }

    /// Ends the connection in both directions. A reader then gets the end of the stream.
    package func abort() { shutdown(connection.descriptor.number, CInt(SHUT_RDWR)) }

    /// Returns when the kernel has accepted all bytes.
    ///
    /// - Throws: `ExchangeError.unwritten`, `.blocked`, `.notPermitted`; `CancellationError`.
    package func send(
        _ bytes: [UInt8],
        by permission: Permission? = nil,
        within limit: Duration,
        clock: any Clock<Duration>
    ) async throws {
        let watch = ElapsedTimer(clock)
        var rest = bytes[...]
        while !rest.isEmpty {
            let left = limit - watch.elapsed
            rest = rest.dropFirst(try await sendSome(rest, by: permission, within: left, clock: clock))
        }
    }

    /// Writes some bytes and returns their number. The bytes that complete a message are written only while the message
    /// is permitted.
    ///
    /// - Throws: The errors of `send`; no bytes were written.
    package func sendSome(
        _ bytes: ArraySlice<UInt8>,
        by permission: Permission? = nil,
        within limit: Duration,
        clock: any Clock<Duration>
    ) async throws -> Int {
        let number = connection.descriptor.number
        while true {
            let count = try write(bytes, by: permission)
            if count >= 0 { return count }
            if count == -Int(EAGAIN) {
                // The poller supports one wait per descriptor, and a reader may be waiting on this one.
                let copy = Descriptor(owning: fcntl(number, F_DUPFD_CLOEXEC, 0))
                guard copy.number >= 0 else { throw ExchangeError.unwritten }
                guard
                    limit > .zero,
                    try await Poller.shared.wait(for: .writable, of: copy.number, atMost: limit, by: clock)
                else { throw ExchangeError.blocked(seconds: Int(limit.components.seconds)) }
            } else if count != -Int(EINTR) {
                throw ExchangeError.unwritten
            }
        }
    }

    /// Returns the number of written bytes, or the negative error code.
    private func write(_ bytes: ArraySlice<UInt8>, by permission: Permission?) throws(ExchangeError) -> Int {
        let number = connection.descriptor.number
        func send(_ bytes: ArraySlice<UInt8>) -> Int {
            let count = bytes.withUnsafeBytes { Glibc.send(number, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL)) }
            return count < 0 ? -Int(errno) : count
        }
        guard let permission else { return send(bytes) }
        // No server acts on an incomplete message. All but the final bytes of a large one are therefore written without
        // the permission lock.
        guard bytes.count <= Self.finalBytes else { return send(bytes.dropLast(Self.finalBytes)) }
        guard let sent = permission({ send(bytes) }) else { throw .notPermitted }
        return sent
    }

    /// Reads the next bytes without a timeout; empty at the end of the stream.
    ///
    /// - Throws: `ExchangeError.interrupted`, `CancellationError`.
    package func receive() async throws -> [UInt8] {
        while true {
            if let bytes = try receiveNow() { return bytes }
            try await Poller.shared.wait(for: .readable, of: connection.descriptor.number)
        }
    }

    /// Reads the next bytes; nil after the timeout, empty at the end of the stream.
    ///
    /// - Throws: `ExchangeError.interrupted`, `CancellationError`.
    package func receive(within limit: Duration, clock: any Clock<Duration>) async throws -> [UInt8]? {
        while true {
            if let bytes = try receiveNow() { return bytes }
            let number = connection.descriptor.number
            guard try await Poller.shared.wait(for: .readable, of: number, atMost: limit, by: clock) else { return nil }
        }
    }

    /// Reads available bytes; nil if there are none, empty at the end of the stream.
    package func receiveNow() throws(ExchangeError) -> [UInt8]? {
        let number = connection.descriptor.number
        var code: CInt = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: Self.readSize) { buffer, count in
            var result = recv(number, buffer.baseAddress, buffer.count, 0)
            while result < 0, errno == EINTR { result = recv(number, buffer.baseAddress, buffer.count, 0) }
            if result < 0 { code = errno }
            count = max(0, result)
        }
        guard code != 0 else { return bytes }
        guard code == EAGAIN else { throw .interrupted }
        return nil
    }
}

import Glibc
import Model
import Sockets

/// A stream to an app, while requests go over it one after the other.
final class UpstreamConnection: Sendable {
    /// Why a stream could not be written or read.
    enum Failure: Error, Hashable, Sendable {
        /// Not everything was handed to the kernel: no server acts on a request that has not come whole.
        case unwritten
        case broken
    }

    private static let chunk = 64 * 1_024

    let route: Route
    private let carrier: Carrier

    /// The carrier must have nothing that came early: what an app sends before it is asked is no answer.
    init(over route: Route, _ carrier: consuming Carrier) {
        self.route = route
        self.carrier = carrier
    }

    /// Returns when the kernel has everything.
    ///
    /// - Throws: `Failure.unwritten`, `CancellationError`.
    func send(_ bytes: [UInt8]) async throws {
        let number = carrier.descriptor.number
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.send(number, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL)) }
            if count >= 0 {
                rest = rest.dropFirst(count)
            } else if errno == EAGAIN {
                try await Poller.shared.wait(for: .writable, of: number)
            } else if errno != EINTR {
                throw Failure.unwritten
            }
        }
    }

    /// What comes next; nil when nothing does for so long, empty at the end of the stream.
    ///
    /// - Throws: `Failure.broken`, `CancellationError`.
    func receive(within limit: Duration, clock: any Clock<Duration>) async throws -> [UInt8]? {
        while true {
            if let bytes = try receiveNow() { return bytes }
            let number = carrier.descriptor.number
            guard try await Poller.shared.wait(for: .readable, of: number, atMost: limit, by: clock) else { return nil }
        }
    }

    /// What is there already; nil when nothing is, empty at the end of the stream.
    func receiveNow() throws(Failure) -> [UInt8]? {
        let number = carrier.descriptor.number
        var code: CInt = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: Self.chunk) { buffer, count in
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

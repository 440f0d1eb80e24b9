import Glibc
import Model
import SystemIO

/// The requests that open a stream through an adb server, for `ConnectPlan`.
///
/// The server reads the second request after its answer to the first one. It answers the second one after the phone has
/// connected, so the first byte of a stream has a receiver.
enum ADBHandshake {
    private static let okay = Array("OKAY".utf8)

    static func handshake(
        to socket: DeviceSocket,
        over id: ADBTransportID,
        isCurrent: @escaping @Sendable () -> Bool
    ) -> ConnectPlan.Handshake {
        ConnectPlan.Handshake(
            requests: [ADBRequest.transport(id).encoded, ADBRequest.open(socket).encoded],
            evaluate: evaluate,
            verify: { _ in isCurrent() }
        )
    }

    /// Evaluates the bytes of an answer that were received so far.
    @Sendable static func evaluate(_ bytes: UnsafeRawBufferPointer) -> ConnectPlan.Handshake.Result {
        if bytes.starts(with: okay) { return .accepted(length: okay.count) }
        var decoder = ADBAnswerDecoder()
        decoder.append(bytes)
        do {
            switch try decoder.next() {
            case nil: return .incomplete
            case .okay: return .accepted(length: okay.count)
            case .failed(let reason): return .failed(.refused(reason))
            }
        } catch {
            return .failed(.closed)
        }
    }
}

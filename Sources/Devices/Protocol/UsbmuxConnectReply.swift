import Glibc
import Synchronization
import SystemIO

/// The evaluation of the reply to Connect, for `ConnectPlan`.
///
/// A property list decoder takes longer than the connect. The reply "ok" has no variable part: one server always writes it
/// with the same bytes.
enum UsbmuxConnectReply {
    /// Evaluates the bytes received so far. They are compared to the last reply "ok", which a new one replaces.
    static func evaluate(
        _ bytes: UnsafeRawBufferPointer,
        known: borrowing Mutex<[UInt8]>
    ) -> ConnectPlan.Handshake.Result {
        let knownLength = known.withLock { known in
            known.withUnsafeBytes { last in
                guard let start = last.baseAddress, let reply = bytes.baseAddress, bytes.count >= last.count else {
                    return 0
                }
                return memcmp(reply, start, last.count) == 0 ? last.count : 0
            }
        }
        if knownLength > 0 { return .accepted(length: knownLength) }
        let result = decode(bytes)
        if case .accepted(let length) = result { known.withLock { $0 = Array(bytes.prefix(length)) } }
        return result
    }

    private static func decode(_ bytes: UnsafeRawBufferPointer) -> ConnectPlan.Handshake.Result {
        guard bytes.count >= UsbmuxHeader.size else { return .incomplete }
        let length = Int(UsbmuxHeader(of: Array(bytes.prefix(UsbmuxHeader.size))).length)
        var decoder = UsbmuxFrameDecoder()
        decoder.append(bytes.prefix(max(length, UsbmuxHeader.size)))
        do {
            guard let message = try decoder.next() else { return .incomplete }
            guard message.tag == UsbmuxConnection.tag, case .result(let result) = try UsbmuxReply(message) else {
                return .failed(.closed)
            }
            return result == .ok ? .accepted(length: length) : .failed(.rejected(code: result.code))
        } catch {
            return .failed(.closed)
        }
    }
}

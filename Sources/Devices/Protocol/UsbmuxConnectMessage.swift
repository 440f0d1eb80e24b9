import Synchronization
import SystemIO

/// The Connect request as bytes, and the evaluation of its reply, for `ConnectPlan`.
///
/// A property list encoder and decoder take 35 µs for the two messages. The request has two variable numbers, and the
/// reply "ok" has none: one server always writes it with the same bytes.
enum UsbmuxConnectMessage {
    /// Returns the message, like `UsbmuxRequest.connect`.
    static func request(deviceID: UInt32, port: UInt16) -> [UInt8] {
        let body = document(
            """
            <key>ClientVersionString</key><string>patchbay</string>
            <key>DeviceID</key><integer>\(deviceID)</integer>
            <key>MessageType</key><string>Connect</string>
            <key>PortNumber</key><integer>\(port.bigEndian)</integer>
            <key>ProgName</key><string>patchbay</string>
            <key>kLibUSBMuxVersion</key><integer>3</integer>
            """
        )
        return UsbmuxMessage(tag: UsbmuxConnection.tag, body: .propertyList(body)).encoded
    }

    /// Evaluates the bytes received so far. They are compared to the last reply "ok", which a new one replaces.
    static func evaluate(
        _ bytes: UnsafeRawBufferPointer,
        known: borrowing Mutex<[UInt8]>
    ) -> ConnectPlan.Handshake.Result {
        let knownLength = known.withLock { known in
            known.withUnsafeBytes { !$0.isEmpty && bytes.starts(with: $0) ? $0.count : 0 }
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
                return .rejected(code: nil)
            }
            return result == .ok ? .accepted(length: length) : .rejected(code: result.code)
        } catch {
            return .rejected(code: nil)
        }
    }

    private static func document(_ keys: String) -> [UInt8] {
        Array(
            """
            <?xml version="1.0" encoding="UTF-8"?>
            <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
            <plist version="1.0">
            <dict>
            \(keys)
            </dict>
            </plist>

            """.utf8
        )
    }
}

import SystemIO

/// The Connect request as bytes, and the evaluation of its reply, for `ConnectPlan`.
///
/// A property list encoder and decoder take 35 µs for the two messages. The request has two variable numbers, and the
/// usual reply has none.
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

    /// The reply "ok" as libplist writes it in usbmuxd.
    static let usualReply = UsbmuxMessage(
        tag: UsbmuxConnection.tag,
        body: .propertyList(
            document("\t<key>MessageType</key>\n\t<string>Result</string>\n\t<key>Number</key>\n\t<integer>0</integer>")
        )
    ).encoded

    /// Evaluates the bytes received so far. Another notation of the same reply is accepted too.
    static func evaluate(_ bytes: UnsafeRawBufferPointer) -> ConnectPlan.Handshake.Result {
        if bytes.count >= usualReply.count, bytes.prefix(usualReply.count).elementsEqual(usualReply) {
            return .accepted(length: usualReply.count)
        }
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

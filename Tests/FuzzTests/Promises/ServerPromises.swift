import FoundationEssentials
import Model

@testable import Devices

/// Promises for requests of usbmuxd's clients, and for replies of a phone's lockdownd.
enum ServerPromises {
    static func check(_ input: [UInt8]) throws(Violation) {
        try request(input)
        var choices = Choices(input)
        let port = UInt16(choices.number(below: 65_536))
        let device = UInt32(choices.number(below: 65_536))
        let connect = list(
            "<key>MessageType</key><string>Connect</string><key>DeviceID</key><integer>\(device)</integer>"
                + "<key>PortNumber</key><integer>\(port.bigEndian)</integer>"
        )
        let read = try request(connect)
        try promise("a connect is read as it was sent", read == .connect(deviceID: device, port: port))
    }

    static func checkLockdown(_ input: [UInt8]) throws(Violation) {
        reply(input)
        var choices = Choices(input)
        let name = choices.letters(choices.number(below: 30), of: Array("abc 123-_.".utf8))
        let sent = list("<key>Request</key><string>GetValue</string><key>Value</key><string>\(name)</string>")
        let value = (try? LockdownKey.deviceName.value(in: sent)) ?? nil
        try promise("a name is read as it was sent", value == SanitizedText(name))
    }

    private static func list(_ content: String) -> [UInt8] {
        let text = """
            <?xml version="1.0" encoding="UTF-8"?>
            <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
            <plist version="1.0"><dict>\(content)</dict></plist>
            """
        return Array(text.utf8)
    }

    private static func reply(_ input: [UInt8]) {
        for key in [LockdownKey.deviceName, .productType, .productVersion] { _ = try? key.value(in: input) }
    }

    /// Reads a property list as a request, and the input as a stream of frames.
    @discardableResult
    private static func request(_ input: [UInt8]) throws(Violation) -> UsbmuxServerRequest? {
        var decoder = UsbmuxFrameDecoder()
        decoder.append(UsbmuxMessage(tag: 1, body: .propertyList(input)).encoded + input)
        var first: UsbmuxServerRequest?
        do throws(UsbmuxError) {
            while let frame = try decoder.nextFrame() { first = first ?? UsbmuxServerRequest(frame) }
        } catch { return first }
        return first
    }
}

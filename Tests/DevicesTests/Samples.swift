import Model

@testable import Devices

/// Messages of usbmuxd and related programs, in their original form.
enum Samples {
    static let phone = "00008030-001A2B3C4D5E6F70"
    static let other = "0123456789abcdef0123456789abcdef01234567"

    static func propertyList(_ inner: String) -> String {
        """
        <?xml version="1.0" encoding="UTF-8"?>
        <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
        <plist version="1.0">
        \(inner)
        </plist>

        """
    }

    static func frame(_ inner: String, tag: UInt32 = 1) -> [UInt8] {
        UsbmuxMessage(tag: tag, body: .propertyList(Array(propertyList(inner).utf8))).encoded
    }

    static func result(_ code: UInt32, tag: UInt32 = 1) -> [UInt8] {
        let inner = "<key>MessageType</key><string>Result</string><key>Number</key><integer>\(code)</integer>"
        return frame("<dict>\(inner)</dict>", tag: tag)
    }

    static func attached(_ deviceID: Int, _ udid: String, transport: String = "USB") -> String {
        """
        <dict><key>MessageType</key><string>Attached</string><key>DeviceID</key><integer>\(deviceID)</integer>
        <key>Properties</key><dict><key>ConnectionType</key><string>\(transport)</string>
        <key>DeviceID</key><integer>\(deviceID)</integer><key>LocationID</key><integer>65537</integer>
        <key>ProductID</key><integer>4776</integer><key>SerialNumber</key><string>\(udid)</string></dict></dict>
        """
    }

    static func detached(_ deviceID: Int) -> String {
        "<dict><key>MessageType</key><string>Detached</string><key>DeviceID</key><integer>\(deviceID)</integer></dict>"
    }

    static func list(_ records: [String]) -> String {
        "<dict><key>DeviceList</key><array>\(records.joined())</array></dict>"
    }

    static func reply(_ inner: String) throws -> UsbmuxReply {
        try UsbmuxReply(UsbmuxMessage(tag: 0, body: .propertyList(Array(propertyList(inner).utf8))))
    }
}

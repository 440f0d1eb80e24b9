/// The messages of usbmuxd's protocol that the benchmark needs, for both sides.
///
/// Property lists are searched, not parsed, because both sides are part of the benchmark.
enum MuxMessage {
    static let headerSize = 16

    /// Returns the length of the whole message from the header's first word.
    static func length(of header: [UInt8]) -> Int { word(at: 0, of: header) }

    static func tag(of header: [UInt8]) -> Int { word(at: 12, of: header) }

    /// Encodes a Connect to DeviceID 1, the first phone that usbmuxd lists.
    static func connect(port: UInt16) -> [UInt8] {
        frame(
            """
            <dict><key>MessageType</key><string>Connect</string><key>ClientVersionString</key><string>bench</string>
            <key>ProgName</key><string>bench</string><key>DeviceID</key><integer>1</integer>
            <key>PortNumber</key><integer>\(port.bigEndian)</integer></dict>
            """,
            tag: 1
        )
    }

    static func result(_ code: Int, tag: Int) -> [UInt8] {
        frame(
            "<dict><key>MessageType</key><string>Result</string><key>Number</key><integer>\(code)</integer></dict>",
            tag: tag
        )
    }

    static func attached(_ udid: String) -> [UInt8] { frame(record(udid), tag: 0) }

    static func list(_ udid: String, tag: Int) -> [UInt8] {
        frame("<dict><key>DeviceList</key><array>\(record(udid))</array></dict>", tag: tag)
    }

    static func buid(tag: Int) -> [UInt8] {
        frame("<dict><key>BUID</key><string>30142955-4440-1111-2222-000000000000</string></dict>", tag: tag)
    }

    /// Returns the integer value of a key.
    static func number(_ key: String, in body: [UInt8]) -> Int? {
        let text = String(decoding: body, as: UTF8.self)
        guard let at = text.firstRange(of: "<key>\(key)</key>"),
            let open = text[at.upperBound...].firstRange(of: "<integer>")
        else { return nil }
        return Int(text[open.upperBound...].prefix { $0.isNumber })
    }

    private static func record(_ udid: String) -> String {
        """
        <dict><key>MessageType</key><string>Attached</string><key>DeviceID</key><integer>1</integer>
        <key>Properties</key><dict><key>ConnectionType</key><string>USB</string>
        <key>DeviceID</key><integer>1</integer><key>LocationID</key><integer>65537</integer>
        <key>ProductID</key><integer>4776</integer><key>SerialNumber</key><string>\(udid)</string></dict></dict>
        """
    }

    private static func frame(_ inner: String, tag: Int) -> [UInt8] {
        let body = """
            <?xml version="1.0" encoding="UTF-8"?>
            <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
            <plist version="1.0">
            \(inner)
            </plist>

            """
        // Length, version 1, type 8 (property list), tag.
        let words = [headerSize + body.utf8.count, 1, 8, tag]
        return words.flatMap { withUnsafeBytes(of: UInt32($0).littleEndian, Array.init) } + Array(body.utf8)
    }

    private static func word(at offset: Int, of bytes: [UInt8]) -> Int {
        Int(bytes.withUnsafeBytes { UInt32(littleEndian: $0.loadUnaligned(fromByteOffset: offset, as: UInt32.self)) })
    }
}

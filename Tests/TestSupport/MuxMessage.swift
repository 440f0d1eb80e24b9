/// Messages of usbmuxd's protocol, of both sides.
///
/// They are encoded without Patchbay's own implementation, so that tests and the benchmark are independent of it.
/// Property lists are searched and not parsed, and may be invalid.
package enum MuxMessage {
    package static let headerSize = 16

    /// Encodes any message: a header of four little-endian words and a body.
    package static func frame(_ body: [UInt8] = [], version: UInt32, kind: UInt32, tag: UInt32 = 1) -> [UInt8] {
        let words = [UInt32(headerSize + body.count), version, kind, tag]
        return words.flatMap { withUnsafeBytes(of: $0.littleEndian, Array.init) } + body
    }

    /// Encodes a message with a property list of this content.
    package static func propertyList(_ inner: String, tag: UInt32 = 1) -> [UInt8] {
        frame(Array(document(inner).utf8), version: 1, kind: 8, tag: tag)
    }

    /// Returns a property list as usbmuxd writes it.
    package static func document(_ inner: String) -> String {
        """
        <?xml version="1.0" encoding="UTF-8"?>
        <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
        <plist version="1.0">
        \(inner)
        </plist>

        """
    }
}

/// Messages of clients.
extension MuxMessage {
    package static func request(_ type: String, _ rest: String = "", tag: UInt32 = 1) -> [UInt8] {
        propertyList("<dict><key>MessageType</key><string>\(type)</string>\(rest)</dict>", tag: tag)
    }

    package static func connect(_ deviceID: UInt32, _ port: UInt16, tag: UInt32 = 1) -> [UInt8] {
        request("Connect", connectKeys(deviceID, port), tag: tag)
    }

    /// Returns the keys of a Connect. The port is in network byte order (usbmuxd's client.c).
    package static func connectKeys(_ deviceID: UInt32, _ port: UInt16) -> String {
        "<key>DeviceID</key><integer>\(deviceID)</integer><key>PortNumber</key><integer>\(port.bigEndian)</integer>"
    }
}

/// Messages of usbmuxd.
extension MuxMessage {
    package static func result(_ code: UInt32, tag: UInt32 = 1) -> [UInt8] {
        let inner = "<key>MessageType</key><string>Result</string><key>Number</key><integer>\(code)</integer>"
        return propertyList("<dict>\(inner)</dict>", tag: tag)
    }

    package static func buid(tag: UInt32 = 1) -> [UInt8] {
        propertyList("<dict><key>BUID</key><string>30142955-4440-1111-2222-000000000000</string></dict>", tag: tag)
    }

    package static func attached(_ deviceID: Int, _ udid: String, transport: String = "USB") -> String {
        """
        <dict><key>MessageType</key><string>Attached</string><key>DeviceID</key><integer>\(deviceID)</integer>
        <key>Properties</key><dict><key>ConnectionType</key><string>\(transport)</string>
        <key>DeviceID</key><integer>\(deviceID)</integer><key>LocationID</key><integer>65537</integer>
        <key>ProductID</key><integer>4776</integer><key>SerialNumber</key><string>\(udid)</string></dict></dict>
        """
    }

    package static func detached(_ deviceID: Int) -> String {
        "<dict><key>MessageType</key><string>Detached</string><key>DeviceID</key><integer>\(deviceID)</integer></dict>"
    }

    package static func paired(_ deviceID: Int) -> String {
        "<dict><key>MessageType</key><string>Paired</string><key>DeviceID</key><integer>\(deviceID)</integer></dict>"
    }

    package static func list(_ records: [String]) -> String {
        "<dict><key>DeviceList</key><array>\(records.joined())</array></dict>"
    }
}

/// Decoding.
extension MuxMessage {
    /// Returns the length of the whole message.
    package static func length(of header: [UInt8]) -> Int { Int(word(at: 0, of: header)) }

    package static func tag(of header: [UInt8]) -> UInt32 { word(at: 12, of: header) }

    /// Returns the type of a request that a stand-in for usbmuxd knows.
    package static func requestType(of body: [UInt8]) -> String? {
        let text = String(decoding: body, as: UTF8.self)
        return ["Listen", "ListDevices", "Connect", "ReadBUID", "ReadPairRecord"].first {
            text.contains("<string>\($0)</string>")
        }
    }

    /// Returns the integer value of a key.
    package static func number(_ key: String, in body: [UInt8]) -> Int? {
        let text = String(decoding: body, as: UTF8.self)
        guard let at = text.firstRange(of: "<key>\(key)</key>"),
            let open = text[at.upperBound...].firstRange(of: "<integer>")
        else { return nil }
        return Int(text[open.upperBound...].prefix { $0.isNumber })
    }

    private static func word(at offset: Int, of bytes: [UInt8]) -> UInt32 {
        bytes.withUnsafeBytes { UInt32(littleEndian: $0.loadUnaligned(fromByteOffset: offset, as: UInt32.self)) }
    }
}

/// The UDIDs of two phones, one in each of the two formats.
package enum Phones {
    package static let one = "00008030-001A2B3C4D5E6F70"
    package static let two = "0123456789abcdef0123456789abcdef01234567"
}

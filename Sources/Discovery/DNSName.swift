/// A domain name as DNS carries it: labels of 1 to 63 bytes, 255 bytes in all (RFC 1035, section 3.1).
///
/// Labels are bytes, not text: a Bonjour instance name is UTF-8 by RFC 6763, and whatever somebody sent by experience.
struct DNSName: Hashable, Sendable {
    let labels: [[UInt8]]

    init(labels: [[UInt8]]) { self.labels = labels }

    /// A name written with dots, for names of our own that need no escapes.
    init(plain text: String) { labels = text.split(separator: ".").map { Array($0.utf8) } }

    /// Reads the name at the front of `data` and moves past it.
    ///
    /// Avahi gives names in record data uncompressed (avahi_rdata_serialize), so a compression pointer is refused: there
    /// is no message here for it to point into.
    init?(reading data: inout ArraySlice<UInt8>) {
        var labels: [[UInt8]] = []
        var size = 0
        while true {
            guard let length = data.popFirst() else { return nil }
            size += Int(length) + 1
            guard length <= 63, size <= 255, data.count >= Int(length) else { return nil }
            if length == 0 { break }
            labels.append(Array(data.prefix(Int(length))))
            data = data.dropFirst(Int(length))
        }
        self.labels = labels
    }

    /// Reads the data of a PTR record: one name and nothing after it.
    init?(pointerData: [UInt8]) {
        var rest = pointerData[...]
        self.init(reading: &rest)
        guard rest.isEmpty else { return nil }
    }

    /// The name as libavahi takes it, in ASCII: a dot or backslash inside a label gets a backslash, every other unusual
    /// byte becomes `\DDD` (avahi_unescape_label).
    var escaped: String { labels.map(Self.escape).joined(separator: ".") }

    /// libavahi cannot be asked for a name with a zero byte in it; avahi_unescape_label refuses `\000`.
    var isAskable: Bool {
        !labels.isEmpty
            && labels.allSatisfy { label in
                !label.contains(0) && String(validating: label, as: UTF8.self) != nil
            }
    }

    static func escape(_ label: [UInt8]) -> String {
        var text = ""
        for byte in label {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
                text.unicodeScalars.append(Unicode.Scalar(byte))
            case UInt8(ascii: "."), UInt8(ascii: "\\"):
                text += "\\"
                text.unicodeScalars.append(Unicode.Scalar(byte))
            default:
                let digits = String(byte)
                text += "\\" + String(repeating: "0", count: 3 - digits.count) + digits
            }
        }
        return text
    }
}

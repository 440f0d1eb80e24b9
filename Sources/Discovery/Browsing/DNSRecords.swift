import Model

/// A domain name in DNS form: labels of 1 to 63 bytes, at most 255 bytes in all (RFC 1035, section 3.1).
///
/// Labels are bytes, not text. RFC 6763 requires UTF-8 for Bonjour instance names, but senders do not always comply.
struct DNSName: Hashable, Sendable {
    let labels: [[UInt8]]

    init(labels: [[UInt8]]) { self.labels = labels }

    /// Creates a name from dotted text that contains no escapes.
    init(plain text: String) { labels = text.split(separator: ".").map { Array($0.utf8) } }

    /// Reads the name at the start of `data` and removes its bytes from `data`.
    ///
    /// Rejects compression pointers. Avahi passes record data with uncompressed names (avahi_rdata_serialize), and
    /// there is no message that a pointer could refer to.
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

    /// Parses the data of a PTR record: exactly one name.
    init?(pointerData: [UInt8]) {
        var rest = pointerData[...]
        self.init(reading: &rest)
        guard rest.isEmpty else { return nil }
    }

    /// The name in libavahi's ASCII notation. A dot or backslash inside a label is escaped with a backslash, every
    /// other byte outside `[A-Za-z0-9_-]` as `\DDD` (avahi_unescape_label).
    var escaped: String { labels.map(Self.escape).joined(separator: ".") }

    /// True if libavahi can look up this name. avahi_unescape_label rejects `\000`, so labels with a zero byte cannot
    /// be queried.
    var isQueryable: Bool {
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

/// The data of an SRV record: the machine and port of an instance (RFC 2782).
struct SRVRecord: Hashable, Sendable {
    let port: UInt16
    let target: DNSName

    /// Parses priority, weight and port (two bytes each) and an uncompressed name. Returns nil for any other data.
    init?(data: [UInt8]) {
        guard data.count > 6 else { return nil }
        port = UInt16(data[4]) << 8 | UInt16(data[5])
        var rest = data[6...]
        guard let target = DNSName(reading: &rest), rest.isEmpty, target.isQueryable else { return nil }
        self.target = target
    }
}

extension TXTRecord {
    /// Parses the data of a TXT record: strings, each behind a length byte (RFC 1035, section 3.3.14).
    ///
    /// Never fails: parsing stops at a string that is longer than the remaining data.
    init(recordData data: [UInt8]) {
        var items: [[UInt8]] = []
        var rest = data[...]
        while let length = rest.popFirst(), rest.count >= Int(length) {
            if length > 0 { items.append(Array(rest.prefix(Int(length)))) }
            rest = rest.dropFirst(Int(length))
        }
        self.init(items: items)
    }
}

/// The form in which the target of a PTR record names an instance of a service type.
///
/// AppReveal's Flutter responder writes its instance name `AppReveal-com.example.app` as three labels. RFC 6763,
/// section 4.1.1, requires one. Avahi's service browser silently drops such a name: avahi_service_name_split returns
/// AVAHI_ERR_INVALID_SERVICE_TYPE. A record browser still reports it.
enum InstanceName: Hashable, Sendable {
    /// One label before the type. The service browser reports the instance.
    case wellFormed
    /// Several labels before the type. `name` joins them with dots, which restores the name that the sender meant.
    case split(name: [UInt8])
    /// The target is not an instance of this type.
    case otherType

    init(target: DNSName, of type: ServiceType, in domain: String) {
        let tail = DNSName(plain: type.text + "." + domain).labels
        guard target.labels.count > tail.count, zip(target.labels.suffix(tail.count), tail).allSatisfy(Self.same) else {
            self = .otherType
            return
        }
        let name = target.labels.dropLast(tail.count)
        if name.count == 1 {
            self = .wellFormed
        } else if name.contains(where: { $0.first == UInt8(ascii: "_") }) {
            // `_printer._sub._http._tcp` is a subtype (RFC 6763, section 7.1), not an instance.
            self = .otherType
        } else {
            self = .split(name: Array(name.joined(separator: [UInt8(ascii: ".")])))
        }
    }

    /// Compares two labels, ignoring the case of ASCII letters (RFC 1035, section 2.3.3).
    private static func same(_ one: [UInt8], _ other: [UInt8]) -> Bool {
        one.count == other.count && zip(one, other).allSatisfy { Self.folded($0) == Self.folded($1) }
    }

    private static func folded(_ byte: UInt8) -> UInt8 {
        (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte | 0x20 : byte
    }
}

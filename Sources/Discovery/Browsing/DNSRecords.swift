import Model

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

/// The data of an SRV record: where an instance listens (RFC 2782).
struct SRVRecord: Hashable, Sendable {
    let port: UInt16
    let target: DNSName

    /// Priority, weight and port, two bytes each, and an uncompressed name. Nil when it is anything else.
    init?(data: [UInt8]) {
        guard data.count > 6 else { return nil }
        port = UInt16(data[4]) << 8 | UInt16(data[5])
        var rest = data[6...]
        guard let target = DNSName(reading: &rest), rest.isEmpty, target.isAskable else { return nil }
        self.target = target
    }
}

extension TXTRecord {
    /// Reads the data of a TXT record: strings behind a length byte each (RFC 1035, section 3.3.14).
    ///
    /// Never fails: a string that claims more bytes than there are ends the reading.
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

/// How the target of a PTR record names an instance of a service type.
///
/// AppReveal's Flutter responder writes its instance name `AppReveal-com.example.app` as three labels where RFC 6763,
/// section 4.1.1, demands one. Avahi's service browser drops such a name without a word (avahi_service_name_split gives
/// AVAHI_ERR_INVALID_SERVICE_TYPE), a record browser still hands it over.
enum InstanceName: Hashable, Sendable {
    /// One label before the type: the service browser reports it.
    case wellFormed
    /// Several labels before the type; `name` is what they were before somebody cut them at their dots.
    case split(name: [UInt8])
    /// Not an instance of that type.
    case foreign

    init(target: DNSName, of type: ServiceType, in domain: String) {
        let tail = DNSName(plain: type.text + "." + domain).labels
        guard target.labels.count > tail.count, zip(target.labels.suffix(tail.count), tail).allSatisfy(Self.same) else {
            self = .foreign
            return
        }
        let name = target.labels.dropLast(tail.count)
        if name.count == 1 {
            self = .wellFormed
        } else if name.contains(where: { $0.first == UInt8(ascii: "_") }) {
            // `_printer._sub._http._tcp` is a subtype (RFC 6763, section 7.1), not an instance.
            self = .foreign
        } else {
            self = .split(name: Array(name.joined(separator: [UInt8(ascii: ".")])))
        }
    }

    /// DNS compares ASCII letters without case (RFC 1035, section 2.3.3).
    private static func same(_ one: [UInt8], _ other: [UInt8]) -> Bool {
        one.count == other.count && zip(one, other).allSatisfy { Self.folded($0) == Self.folded($1) }
    }

    private static func folded(_ byte: UInt8) -> UInt8 {
        (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte | 0x20 : byte
    }
}

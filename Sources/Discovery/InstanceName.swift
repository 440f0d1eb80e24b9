import Model

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

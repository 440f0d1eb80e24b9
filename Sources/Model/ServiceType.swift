/// A DNS-SD service type such as `_appreveal._tcp` (RFC 6763, section 7; syntax in RFC 6335, section 5.1).
package struct ServiceType: Hashable, Sendable, Comparable, CustomStringConvertible {
    /// The type in lower case without domain: `_name._tcp` or `_name._udp`.
    package let text: String

    package static let appreveal = ServiceType(known: "_appreveal._tcp")
    package static let debug = ServiceType(known: "_debug._tcp")
    package static let mcp = ServiceType(known: "_mcp._tcp")
    package static let openagents = ServiceType(known: "_openagents._tcp")
    package static let dartVMService = ServiceType(known: "_dartvmservice._tcp")
    /// The type under which Flutter's tool announces the apps that it runs.
    package static let flutterDevices = ServiceType(known: "_flutter_devices._tcp")

    /// The type under which a broker announces its remote listener.
    package static let patchbay = ServiceType(known: "_patchbay._tcp")

    /// The service types that Patchbay browses by default.
    package static let standard: [ServiceType] = [
        appreveal, debug, mcp, openagents, dartVMService, flutterDevices,
    ]

    /// Parses a service type and folds its case, because DNS names ignore case. Returns nil for other text.
    ///
    /// RFC 6335 allows 15 characters. Longer names exist in practice, so the limit is Avahi's: 63 bytes with the
    /// underscore. RFC 6335 has no underscore inside a name; Flutter uses one, and Avahi accepts it. One-letter names are
    /// rejected because Avahi 0.8 rejects them ("Invalid service type").
    package init?(_ text: some StringProtocol) {
        let folded = text.lowercased()
        let labels = folded.split(separator: ".", omittingEmptySubsequences: false)
        guard labels.count == 2, labels[1] == "_tcp" || labels[1] == "_udp", labels[0].first == "_" else { return nil }
        let name = labels[0].dropFirst()
        let letters = name.utf8.filter { $0.isLetterOrDigit && !$0.isDigit }
        let allowed = name.utf8.allSatisfy { $0.isLetterOrDigit || "-_".utf8.contains($0) }
        guard (2...62).contains(name.utf8.count), allowed, !letters.isEmpty,
            let first = name.first, let last = name.last, !"-_".contains(first), !"-_".contains(last)
        else { return nil }
        self.text = folded
    }

    private init(known text: String) { self.text = text }

    package var description: String { text }

    package static func < (one: ServiceType, other: ServiceType) -> Bool { one.text < other.text }
}

extension ServiceType: Codable {
    package init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let text = try container.decode(String.self)
        guard let type = ServiceType(text) else {
            throw DecodingError.dataCorruptedError(
                in: container,
                debugDescription: "\"\(SanitizedText(text))\" is not a service type; write it like _appreveal._tcp"
            )
        }
        self = type
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(text)
    }
}

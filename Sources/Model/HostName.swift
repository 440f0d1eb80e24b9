package import FoundationEssentials

/// The name of a host in a team: `[a-z0-9][a-z0-9-]{0,31}`, unique in the team.
package struct HostName: Hashable, Sendable, Comparable, CustomStringConvertible {
    package let text: String

    package static let lengthLimit = 32

    /// Returns nil unless the text is a valid name.
    package init?(_ text: some StringProtocol) {
        guard (1...Self.lengthLimit).contains(text.utf8.count), text.utf8.allSatisfy(EndpointID.isAllowed),
            // A name like `-x` is an option for a program that gets it as an argument.
            text.utf8.first != UInt8(ascii: "-")
        else {
            return nil
        }
        self.text = String(text)
    }

    package var description: String { text }

    package static func < (one: HostName, other: HostName) -> Bool { one.text < other.text }
}

extension HostName: Codable {
    package init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let text = try container.decode(String.self)
        guard let name = HostName(text) else {
            throw DecodingError.dataCorruptedError(
                in: container,
                debugDescription:
                    "\"\(SanitizedText(text))\" is not a host name; use a-z, 0-9 and hyphens, and begin with a letter or digit"
            )
        }
        self = name
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(text)
    }
}

/// The state of the broker's knowledge about another host of the team.
package struct HostStatus: Hashable, Sendable, Codable {
    package let name: HostName
    /// The time since which the entries of the host may be outdated. Nil while the team's registry is reachable.
    package var staleSince: Date?

    package init(name: HostName, staleSince: Date? = nil) {
        self.name = name
        self.staleSince = staleSince
    }
}

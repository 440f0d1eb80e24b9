/// The text `PATCHBAY:1:HOST:PORT:PIN:INVITE`, with which a client joins a broker. A secret, because of the invite.
///
/// The pin is empty for a broker on the same machine. An IPv6 address has brackets.
package struct PairingString: Hashable, Sendable {
    /// The reason why a text is not a pairing string. The text itself is a secret and is not repeated.
    package enum ParseError: Error, Hashable, Sendable {
        case tooLong
        case notAPairingString
        case unknownVersion
        /// The end is missing, for example because it was not copied.
        case incomplete
        case invalidAddress
        case invalidPin
        case invalidInvite
    }

    package static let prefix = "PATCHBAY:"
    /// The maximum length in bytes.
    package static let lengthLimit = 256
    private static let version = "1"
    /// The maximum length of a host in bytes. The longest address has 39 bytes and a zone of at most 16.
    private static let hostLimit = 128

    /// A host name or an address, without brackets.
    package let host: String
    /// The port, 1 to 65,535.
    package let port: UInt16
    /// The pin of the broker's key; nil for a broker on the same machine.
    package let pin: KeyPin?
    /// The token `pbi_…`.
    package let invite: String

    package init(host: String, port: UInt16, pin: KeyPin?, invite: String) {
        self.host = host
        self.port = port
        self.pin = pin
        self.invite = invite
    }

    /// Parses a text strictly: `description` returns the same text.
    ///
    /// - Throws: `ParseError`.
    package init(_ text: some StringProtocol) throws(ParseError) {
        guard text.utf8.prefix(Self.lengthLimit + 1).count <= Self.lengthLimit else { throw .tooLong }
        guard text.utf8.starts(with: Self.prefix.utf8) else { throw .notAPairingString }
        // The fields are counted from the end, because an IPv6 address contains colons.
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        // A combining character behind the prefix leaves one part only.
        guard parts.count >= 2, parts[1].isEmpty || parts[1] == Self.version else { throw .unknownVersion }
        guard parts.count >= 6, !parts[1].isEmpty else { throw .incomplete }
        let host = try Self.host(parts[2..<(parts.count - 3)].joined(separator: ":"))
        let (digits, pin, invite) = (parts[parts.count - 3], parts[parts.count - 2], parts[parts.count - 1])
        // Only the canonical form is accepted: "+7282" and "07282" are numbers, too.
        guard let port = UInt16(digits), port > 0, "\(port)" == digits else { throw .invalidAddress }
        guard pin.isEmpty || KeyPin(pin) != nil else { throw .invalidPin }
        // Checks the checksum, because the broker counts a mistyped token as a failed attempt.
        guard TokenFormat.parts(of: invite)?.kind == .invite else { throw .invalidInvite }
        self.init(host: host, port: port, pin: KeyPin(pin), invite: String(invite))
    }

    /// Removes the brackets of an IPv6 address.
    private static func host(_ text: String) throws(ParseError) -> String {
        let isBracketed = text.hasPrefix("[") && text.hasSuffix("]")
        let host = isBracketed ? String(text.dropFirst().dropLast()) : text
        guard host.contains(":") == isBracketed, isHost(host) else { throw .invalidAddress }
        return host
    }

    /// Returns whether a text may be the host of a pairing string: a host name or an address without brackets.
    package static func isHost(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.count <= hostLimit && text.utf8.allSatisfy(isHostByte)
    }

    /// Returns whether a byte may be in a host name or a numeric address. `%` starts the zone of a link-local address.
    private static func isHostByte(_ byte: UInt8) -> Bool {
        Base62.contains(byte) || "-._:%".utf8.contains(byte)
    }
}

extension PairingString: CustomStringConvertible {
    package var description: String {
        let host = host.contains(":") ? "[\(host)]" : host
        return "\(Self.prefix)\(Self.version):\(host):\(port):\(pin?.description ?? ""):\(invite)"
    }
}

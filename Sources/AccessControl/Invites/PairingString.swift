import Model

/// A string with everything that another device needs to join: address, pin and invite.
///
/// Format: `PATCHBAY:1:<host>:<port>:<pin>:<invite>`. The pin is the SHA-256 of the broker's SubjectPublicKeyInfo in 52
/// letters of base32 (RFC 4648). A man in the middle has a different key. The pin is empty exactly when the host is a
/// loopback address, where no man in the middle exists.
package struct PairingString: Sendable {
    /// Maximum length in bytes. A QR code of this size can still be scanned from a terminal.
    static let lengthLimit = 256

    /// A host name, an IPv4 address, or an IPv6 address in brackets.
    package let host: String
    package let port: UInt16
    /// The pin; nil exactly when the host is a loopback address.
    package let pin: String?
    package let invite: Token

    /// Validates the parts.
    ///
    /// - Throws: `AccessError.notAPairingString` when the parts are invalid.
    package init(host: String, port: UInt16, pin: String?, invite: Token) throws(AccessError) {
        guard Self.isHost(host), port > 0, invite.kind == .invite else {
            throw .notAPairingString("its address is not a host and a port")
        }
        guard Self.isLoopback(host) == (pin == nil), pin.map(Self.isPin) ?? true else {
            throw .notAPairingString("it needs the broker's fingerprint, except for a loopback address")
        }
        self.host = host
        self.port = port
        self.pin = pin
        self.invite = invite
        guard reveal().utf8.count <= Self.lengthLimit else { throw .notAPairingString("its host is too long") }
    }

    /// Parses a pairing string.
    ///
    /// - Throws: `AccessError.notAPairingString`, which does not repeat the input.
    package init(_ text: some StringProtocol) throws(AccessError) {
        guard text.utf8.prefix(Self.lengthLimit + 1).count <= Self.lengthLimit else {
            throw .notAPairingString("it has more than \(Self.lengthLimit) bytes")
        }
        // A combining character (U+0301) would otherwise hide a colon in a `Character`.
        guard text.utf8.starts(with: "PATCHBAY:".utf8), text.utf8.allSatisfy({ $0 < 0x80 }) else {
            throw .notAPairingString("it does not begin with PATCHBAY:, or contains other characters than were printed")
        }
        let (version, rest) = Self.splitAtColon(text.dropFirst("PATCHBAY:".count))
        guard version == "1", let rest else {
            throw .notAPairingString("its version is not 1; use the same version of Patchbay on both sides")
        }
        guard let (host, tail) = Self.splitHost(rest) else {
            throw .notAPairingString("its address is not a host and a port")
        }
        let parts = tail.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 3, let port = UInt16(parts[0]), "\(port)" == parts[0] else {
            throw .notAPairingString("its address is not a host and a port")
        }
        guard let invite = try? Token(parts[2]) else {
            throw .notAPairingString("its invite is mistyped or incomplete; copy the whole string")
        }
        try self.init(host: host, port: port, pin: parts[1].isEmpty ? nil : String(parts[1]), invite: invite)
    }

    /// Returns the whole string with the invite's secret. Only the pairing person may see the result.
    package func reveal() -> String { "PATCHBAY:1:\(host):\(port):\(pin ?? ""):\(invite.reveal())" }

    private static func splitAtColon(_ text: some StringProtocol) -> (head: Substring, tail: Substring?) {
        let text = Substring(text)
        guard let colon = text.firstIndex(of: ":") else { return (text, nil) }
        return (text[..<colon], text[text.index(after: colon)...])
    }

    private static func splitHost(_ text: Substring) -> (host: String, tail: Substring)? {
        guard text.hasPrefix("[") else {
            let (host, tail) = splitAtColon(text)
            return tail.map { (String(host), $0) }
        }
        guard let bracket = text.firstIndex(of: "]") else { return nil }
        let tail = text[text.index(after: bracket)...]
        return tail.hasPrefix(":") ? (String(text[...bracket]), tail.dropFirst()) : nil
    }

    private static func isHost(_ host: String) -> Bool {
        var name = host.utf8[...]
        let isBracketed = name.first == UInt8(ascii: "[") && name.last == UInt8(ascii: "]")
        if isBracketed { name = name.dropFirst().dropLast() }
        let signs = isBracketed ? ".:%" : ".-"
        return !name.isEmpty && name.allSatisfy { Base62.contains($0) || signs.utf8.contains($0) }
    }

    private static func isLoopback(_ host: String) -> Bool { host == "127.0.0.1" || host == "[::1]" }

    private static func isPin(_ text: String) -> Bool {
        let utf8 = text.utf8
        // 256 bits are 51 letters and one bit, so the last letter is A or Q.
        return utf8.count == 52 && (utf8.last == UInt8(ascii: "A") || utf8.last == UInt8(ascii: "Q"))
            && utf8.allSatisfy { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0) || (0x32...0x37).contains($0) }
    }
}

extension PairingString: CustomStringConvertible, CustomDebugStringConvertible {
    package var description: String { "PATCHBAY:1:\(host):\(port):\(pin ?? ""):\(invite)" }
    package var debugDescription: String { description }
}

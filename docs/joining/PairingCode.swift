import Foundation

/// The text of the QR code: PATCHBAY:1:HOST:PORT:PIN:INVITE. An IPv6 address has brackets.
struct PairingCode {
    let broker: URL
    /// The SHA-256 of the broker's SubjectPublicKeyInfo.
    let pin: [UInt8]
    let invite: String

    init?(_ text: String) {
        let parts = text.components(separatedBy: ":")
        guard parts.count >= 6, parts[0] == "PATCHBAY", parts[1] == "1" else { return nil }
        let host = parts[2..<(parts.count - 3)].joined(separator: ":")
        guard let broker = URL(string: "https://\(host):\(parts[parts.count - 3])") else { return nil }
        let pin = Self.base32(parts[parts.count - 2])
        guard pin.count == 32 else { return nil }
        (self.broker, self.pin, invite) = (broker, pin, parts[parts.count - 1])
    }

    /// Decodes base32 (RFC 4648) without padding.
    private static func base32(_ text: String) -> [UInt8] {
        let letters = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567")
        var (bytes, buffer, bits): ([UInt8], Int, Int) = ([], 0, 0)
        for letter in text {
            guard let value = letters.firstIndex(of: letter) else { return [] }
            (buffer, bits) = ((buffer << 5 | value) & 0xFFF, bits + 5)
            guard bits >= 8 else { continue }
            bits -= 8
            bytes.append(UInt8(buffer >> bits & 0xFF))
        }
        return bytes
    }
}

/// Base32 of RFC 4648, section 6, in upper case and without padding.
///
/// QR codes hold upper-case letters and digits in fewer dots than other text.
package enum Base32 {
    private static let letters = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".utf8)

    /// Returns the text of the bytes: 8 letters for each 5 bytes, the last group shorter.
    package static func encode(_ bytes: some Sequence<UInt8>) -> String {
        var text: [UInt8] = []
        var buffer = 0
        var bits = 0
        for byte in bytes {
            buffer = (buffer << 8 | Int(byte)) & 0xFFFF
            bits += 8
            while bits >= 5 {
                bits -= 5
                text.append(letters[buffer >> bits & 31])
            }
        }
        if bits > 0 { text.append(letters[buffer << (5 - bits) & 31]) }
        return String(decoding: text, as: UTF8.self)
    }

    /// Returns the bytes of a text, or nil if `encode` produces another text for these bytes.
    ///
    /// Lower case, padding and a last letter with unused bits are rejected. Each value thus has one text.
    package static func decode(_ text: some StringProtocol) -> [UInt8]? {
        var bytes: [UInt8] = []
        var buffer = 0
        var bits = 0
        for byte in text.utf8 {
            guard let value = letters.firstIndex(of: byte) else { return nil }
            buffer = (buffer << 5 | value) & 0xFFFF
            bits += 5
            if bits >= 8 {
                bits -= 8
                bytes.append(UInt8(buffer >> bits & 0xFF))
            }
        }
        guard bits < 5, buffer & (1 << bits - 1) == 0 else { return nil }
        return bytes
    }
}

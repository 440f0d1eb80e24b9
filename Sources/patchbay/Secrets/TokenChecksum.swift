/// Whether an invite was typed or copied whole: its last six letters are the CRC-32 of the others, in base62.
enum TokenChecksum {
    private static let alphabet = Array("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz".utf8)

    static func isWhole(_ text: String) -> Bool {
        let parts = text.utf8.split(separator: UInt8(ascii: "_"), omittingEmptySubsequences: false)
        guard parts.map(\.count) == [3, 8, 22, 6], parts.joined().allSatisfy(alphabet.contains) else { return false }
        return parts[3].elementsEqual(letters(for: checksum(of: text.utf8.dropLast(7))))
    }

    private static func letters(for number: UInt32) -> [UInt8] {
        var rest = number
        return (0..<6).map { _ in
            defer { rest /= 62 }
            return alphabet[Int(rest % 62)]
        }.reversed()
    }

    /// ISO 3309, as zip and PNG have it.
    private static func checksum(of bytes: some Sequence<UInt8>) -> UInt32 {
        ~bytes.reduce(~0) { checksum, byte in
            (0..<8).reduce(checksum ^ UInt32(byte)) { checksum, _ in
                checksum & 1 == 1 ? checksum >> 1 ^ 0xEDB8_8320 : checksum >> 1
            }
        }
    }
}

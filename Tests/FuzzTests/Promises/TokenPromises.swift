import Model

@testable import AccessControl

/// Promises for tokens: parsing returns the printed value, and invalid text is rejected without being repeated.
enum TokenPromises {
    private static let letters = Array("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz".utf8)

    static func check(_ input: [UInt8]) throws(Violation) {
        try read(String(decoding: input, as: UTF8.self))

        var choices = Choices(input)
        let good = made(&choices)
        try promise("a token that is well formed is read", isToken(good))
        try read(String(decoding: good, as: UTF8.self))

        var typo = good
        let place = choices.number(below: typo.count)
        typo[place] = choices.one(of: letters)
        if typo != good { try promise("no single wrong letter goes unnoticed", !accepts(typo)) }
        for _ in 0..<choices.number(below: 4) { choices.edit(&typo) }
        try read(String(decoding: typo, as: UTF8.self))
    }

    /// Returns a valid token as bytes.
    static func made(_ choices: inout Choices, _ kinds: [Token.Kind] = Token.Kind.allCases) -> [UInt8] {
        let kind = choices.one(of: kinds)
        let id = choices.letters(8, of: letters)
        let secret = choices.letters(kind == .invite ? 22 : 43, of: letters)
        let text = Array("\(kind.rawValue)_\(id)_\(secret)".utf8)
        return text + "_".utf8 + checksum(of: text[...])
    }

    private static func accepts(_ bytes: [UInt8]) -> Bool {
        (try? Token(String(decoding: bytes, as: UTF8.self))) != nil
    }

    private static func read(_ text: String) throws(Violation) {
        let utf8 = Array(text.utf8)
        do {
            let token = try Token(text)
            try promise("only a token is taken for one", isToken(utf8))
            try promise("what was read is printed as it was", Array(token.reveal().utf8) == utf8)
            let secret = String(decoding: utf8.dropFirst(13).dropLast(7), as: UTF8.self)
            try promise(
                "printing a token does not print its secret",
                !"\(token) \(token.debugDescription)".contains(secret)
            )
        } catch let violation as Violation {
            throw violation
        } catch {
            try promise("a token is read", !isToken(utf8))
            try promise("every refusal is the same", error as? AccessError == .notAToken)
        }
    }

    /// A second implementation of the rule: fixed offsets, and a bitwise checksum.
    static func isToken(_ bytes: [UInt8]) -> Bool {
        let isInvite = bytes.starts(with: "pbi_".utf8) && bytes.count == 42
        let isGrant = ["pbg_", "pbr_"].contains { bytes.starts(with: $0.utf8) } && bytes.count == 63
        guard isInvite || isGrant else { return false }
        let separators = [3, 12, bytes.count - 7]
        let isWellFormed = bytes.indices.allSatisfy { index in
            separators.contains(index) ? bytes[index] == UInt8(ascii: "_") : letters.contains(bytes[index])
        }
        return isWellFormed && checksum(of: bytes.dropLast(7)) == Array(bytes.suffix(6))
    }

    private static func checksum(of bytes: ArraySlice<UInt8>) -> [UInt8] {
        var value: UInt32 = 0xFFFF_FFFF
        for byte in bytes {
            value ^= UInt32(byte)
            for _ in 0..<8 { value = value & 1 == 1 ? value >> 1 ^ 0xEDB8_8320 : value >> 1 }
        }
        value = ~value
        return [916_132_832, 14_776_336, 238_328, 3_844, 62, 1].map { letters[Int(value / $0 % 62)] }
    }
}

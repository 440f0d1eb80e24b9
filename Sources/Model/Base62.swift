/// The 62 letters of tokens: no sign that a shell, a URL or a double click would stop at.
package enum Base62 {
    package static let letters = Array("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz".utf8)

    /// A letter for a random byte; nil for one that must be drawn again.
    ///
    /// 256 is no multiple of 62: the remainder of a byte below 248 (4 × 62) is even over all letters, of the others not.
    package static func letter(for byte: UInt8) -> UInt8? { byte < 248 ? letters[Int(byte % 62)] : nil }

    package static func random(count: Int, from source: inout some RandomNumberGenerator) -> String {
        var text: [UInt8] = []
        while text.count < count {
            var word = source.next()
            for _ in 0..<8 where text.count < count {
                if let letter = letter(for: UInt8(truncatingIfNeeded: word)) { text.append(letter) }
                word >>= 8
            }
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// A number as exactly `count` letters, the most significant first.
    package static func text(of number: UInt32, count: Int) -> String {
        var rest = Int(number)
        var text: [UInt8] = []
        for _ in 0..<count {
            text.append(letters[rest % 62])
            rest /= 62
        }
        return String(decoding: text.reversed(), as: UTF8.self)
    }

    package static func contains(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "a")...UInt8(ascii: "z"):
            true
        default: false
        }
    }
}

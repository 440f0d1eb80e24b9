import Glibc

/// Finds the places in a text that are secrets, or that look like secrets.
///
/// It finds the known secrets, the values of names such as `password` or `Authorization`, and the tokens of Patchbay. It
/// also finds long runs of letters and digits without order. A secret that is encoded or split is not found. A long name
/// without order may be found by mistake, which costs a reader a word.
package struct SecretScanner {
    /// Words that a name of a secret contains, without hyphens and underscores.
    private static let words = [
        "password", "passwd", "passphrase", "passcode", "secret", "token", "authorization", "authkey", "authcode",
        "cookie", "apikey", "accesskey", "privatekey", "credential", "sessionid", "sessionkey", "signature",
    ].map { Array($0.utf8) }
    /// Names of secrets that would be parts of other words.
    private static let names = ["pwd", "pass", "auth", "otp", "pin", "cvv", "sid", "jwt", "bearer"].map {
        Array($0.utf8)
    }
    /// The maximum length of a name; a longer one names no secret.
    private static let nameLimit = 64
    /// The minimum length of a run that may be a token.
    private static let tokenLength = 24
    private static let hexTokenLength = 32
    /// The minimum length of the code of a Dart VM service, which is 8 random bytes in base64.
    private static let authCodeLength = 10

    private let bytes: UnsafeBufferPointer<UInt8>
    private var found: [Range<Int>] = []
    private var position = 0

    /// Returns the ranges of a text to remove, in order and without overlaps.
    static func ranges(in bytes: UnsafeBufferPointer<UInt8>, known: [[UInt8]]) -> [Range<Int>] {
        var scanner = SecretScanner(bytes)
        scanner.scan()
        scanner.scanBase64()
        scanner.scanUserinfo()
        scanner.scanAuthCodes()
        for secret in known { scanner.find(secret) }
        return scanner.merged
    }

    /// Returns whether a name of a member or of a header names a secret.
    static func isNameOfSecret(_ name: String) -> Bool {
        var name = name
        return name.withUTF8 { isNameOfSecret($0) }
    }

    /// Returns the position of a text at or after a start; nil without one.
    package static func find(_ token: [UInt8], in bytes: UnsafeBufferPointer<UInt8>, from start: Int) -> Int? {
        guard let base = bytes.baseAddress, let first = token.first else { return nil }
        // The end of the positions at which it fits.
        let end = bytes.count - token.count + 1
        var position = start
        while position < end, let found = memchr(base + position, CInt(first), end - position) {
            position = UnsafeRawPointer(found) - UnsafeRawPointer(base)
            if memcmp(base + position, token, token.count) == 0 { return position }
            position += 1
        }
        return nil
    }

    private init(_ bytes: UnsafeBufferPointer<UInt8>) { self.bytes = bytes }

    private var merged: [Range<Int>] {
        guard found.count > 1 else { return found }
        return found.sorted { $0.lowerBound < $1.lowerBound }.reduce(into: []) { merged, range in
            if let last = merged.last, range.lowerBound <= last.upperBound {
                merged[merged.count - 1] = last.lowerBound..<max(last.upperBound, range.upperBound)
            } else {
                merged.append(range)
            }
        }
    }

    private mutating func find(_ secret: [UInt8]) {
        var start = 0
        while let match = Self.find(secret, in: bytes, from: start) {
            start = match + secret.count
            found.append(match..<start)
        }
    }

    private mutating func scan() {
        while position < bytes.count {
            guard Self.isWord(bytes[position]) else {
                position += 1
                continue
            }
            let start = position
            while position < bytes.count, Self.isWord(bytes[position]) { position += 1 }
            inspect(start..<position)
        }
    }

    /// Finds tokens in base64 with its last two letters, which would otherwise end a run.
    private mutating func scanBase64() {
        guard bytes.contains(where: Self.isBase64Sign) else { return }
        var start = 0
        for index in 0...bytes.count {
            if index < bytes.count, Self.isWord(bytes[index]) || Self.isBase64Sign(bytes[index]) { continue }
            let run = UnsafeBufferPointer(rebasing: bytes[start..<index])
            if run.count >= Self.hexTokenLength, run.contains(where: Self.isBase64Sign), Self.isToken(run) {
                found.append(start..<index)
            }
            start = index + 1
        }
    }

    /// Finds the password in the userinfo of a URL (RFC 3986, section 3.2.1): `https://anna:hunter2@host`.
    private mutating func scanUserinfo() {
        guard bytes.contains(0x40) else { return }
        var start = 0
        while let slashes = Self.find(Array("://".utf8), in: bytes, from: start) {
            start = slashes + 3
            var colon: Int?
            var end = start
            while end < bytes.count, bytes[end] != 0x40, bytes[end] != 0x2F, bytes[end] != 0x3F, bytes[end] > 0x20 {
                if bytes[end] == 0x3A, colon == nil { colon = end }
                end += 1
            }
            if end < bytes.count, bytes[end] == 0x40, let colon, colon + 1 < end { found.append(colon + 1..<end) }
            start = end
        }
    }

    /// Finds the authentication code of a Dart VM service in a URL: `http://127.0.0.1:41321/EMYU73JbR-A=/`.
    private mutating func scanAuthCodes() {
        var start = 0
        while let slashes = Self.find(Array("://".utf8), in: bytes, from: start) {
            start = slashes + 3
            while start < bytes.count, bytes[start] > 0x20, bytes[start] != 0x2F { start += 1 }
            let code = min(start + 1, bytes.count)
            var end = code
            while end < bytes.count, Self.isWord(bytes[end]) { end += 1 }
            while end < bytes.count, bytes[end] == 0x3D { end += 1 }
            if end - code >= Self.authCodeLength, bytes[end - 1] == 0x3D { found.append(code..<end) }
            start = code
        }
    }

    private static func isBase64Sign(_ byte: UInt8) -> Bool { byte == 0x2B || byte == 0x2F }

    /// Inspects a run of letters, digits, hyphens and underscores.
    private mutating func inspect(_ run: Range<Int>) {
        let word = UnsafeBufferPointer(rebasing: bytes[run])
        if Self.isScheme(word), let value = value(after: run.upperBound, separators: " "), value.count >= 8 {
            return remove(value)
        }
        if run.count <= Self.nameLimit, let value = value(after: run.upperBound, separators: ":="),
            Self.isNameOfSecret(word)
        {
            return remove(value)
        }
        // The parts of a JSON Web Token are separated by dots.
        let continuesToken = found.last?.upperBound == run.lowerBound - 1 && bytes[run.lowerBound - 1] == 0x2E
        if continuesToken || Self.isToken(word) { found.append(run) }
    }

    private mutating func remove(_ value: Range<Int>) {
        if !isWordWithoutSecret(value) { found.append(value) }
        position = max(position, value.upperBound)
    }

    /// True for the values that hide nothing.
    private func isWordWithoutSecret(_ value: Range<Int>) -> Bool {
        let text = String(decoding: bytes[value], as: UTF8.self)
        return text.isEmpty || ["true", "false", "null"].contains(text)
    }

    /// Returns the value that follows a name: after a separator, with or without quotes; nil without one.
    private func value(after end: Int, separators: StaticString) -> Range<Int>? {
        var start = end
        func skip(_ isSkipped: (UInt8) -> Bool) { while start < bytes.count, isSkipped(bytes[start]) { start += 1 } }
        let isSpace = separators.utf8CodeUnitCount == 1
        if !isSpace { skip { Self.isQuote($0) || $0 == 0x20 } }
        let separator = start
        guard start < bytes.count,
            separators.withUTF8Buffer({ $0.contains(bytes[separator]) })
        else { return nil }
        start += 1
        skip { $0 == 0x20 }
        let opening = start
        skip(Self.isQuote)
        let quote = start > opening ? bytes[start - 1] : nil
        let first = start
        skip { quote.map { $0 != bytes[start] } ?? !Self.endsValue($0) }
        guard quote == nil else { return first..<start }
        // `Authorization: Bearer abc` has a word before its value.
        let word = UnsafeBufferPointer(rebasing: bytes[first..<start])
        if Self.isScheme(word), start < bytes.count, bytes[start] == 0x20 {
            skip { $0 == 0x20 }
            skip { !Self.endsValue($0) }
        }
        // A header has no quotes, so that its value may have spaces and semicolons.
        if start < bytes.count, bytes[start] == 0x3B, bytes[separator] == 0x3A { skip { $0 != 0x0A && $0 != 0x0D } }
        return first..<start
    }

    private static func isQuote(_ byte: UInt8) -> Bool { byte == 0x22 || byte == 0x27 || byte == 0x5C }

    private static func endsValue(_ byte: UInt8) -> Bool {
        byte <= 0x20 || ",;&\"'<>(){}[]\\".utf8.contains(byte)
    }

    private static func isWord(_ byte: UInt8) -> Bool { byte.isLetterOrDigit || byte == 0x2D || byte == 0x5F }

    /// True for the schemes of HTTP authentication (RFC 9110, section 11.1) that are followed by a secret.
    private static func isScheme(_ word: UnsafeBufferPointer<UInt8>) -> Bool {
        guard word.count == 6 || word.count == 5 else { return false }
        return lowered(word, is: "bearer") || lowered(word, is: "basic")
    }

    private static func lowered(_ word: UnsafeBufferPointer<UInt8>, is other: StaticString) -> Bool {
        word.count == other.utf8CodeUnitCount
            && other.withUTF8Buffer { zip(word, $0).allSatisfy { $0 | 0x20 == $1 } }
    }

    private static func isNameOfSecret(_ name: UnsafeBufferPointer<UInt8>) -> Bool {
        guard (3...nameLimit).contains(name.count) else { return false }
        let letters = name.filter { $0 != 0x2D && $0 != 0x5F && $0 != 0x20 && $0 != 0x2E }.map { $0 | 0x20 }
        if names.contains(letters) { return true }
        return letters.withUnsafeBufferPointer { letters in
            words.contains { Self.find($0, in: letters, from: 0) != nil }
        }
    }

    /// Returns whether a run looks like a token: one of Patchbay, a long hexadecimal number, or letters and digits that
    /// change at random.
    private static func isToken(_ run: UnsafeBufferPointer<UInt8>) -> Bool {
        if run.count >= 16, ["pbg_", "pbi_", "pbr_"].contains(where: { run.starts(with: $0.utf8) }) { return true }
        // The beginning of a JSON object in base64 (RFC 7519).
        if run.count >= 16, run.starts(with: "eyJ".utf8) { return true }
        guard run.count >= tokenLength else { return false }
        var (digits, upper, lower, hex, changes) = (0, 0, 0, 0, 0)
        var last = 0
        for byte in run {
            let kind: Int
            switch byte {
            case 0x30...0x39: (digits, kind) = (digits + 1, 1)
            case 0x41...0x5A: (upper, kind) = (upper + 1, 2)
            case 0x61...0x7A: (lower, kind) = (lower + 1, 3)
            default: kind = last
            }
            if (0x30...0x39).contains(byte) || (0x61...0x66).contains(byte | 0x20) { hex += 1 }
            if kind != last { changes += 1 }
            last = kind
        }
        if hex == run.count, digits > 0 { return run.count >= hexTokenLength }
        // Words in camel case change less often than letters at random, and UUIDs and UDIDs are no secrets.
        guard digits > 0, upper > 0, lower > 0 else { return false }
        return changes * 20 >= run.count * 9
    }
}

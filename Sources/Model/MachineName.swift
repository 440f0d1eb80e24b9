/// The name of a machine as its mDNS responder announces it, for comparisons: without `.local`, in lower case.
///
/// A number at the end is part of the name, because people number their devices (`iPhone-12.local`). A responder also
/// adds a number when it detects a name conflict (RFC 6762, section 9). Only further evidence tells one from the other.
package struct MachineName: Hashable, Sendable {
    /// The name without escapes: `anna’s iphone`.
    package let text: String

    /// - Parameter announced: The name with or without `.local`, and with or without Avahi's escapes.
    package init(_ announced: some StringProtocol) {
        var name = Self.decoding(announced).lowercased()[...]
        while name.hasSuffix(".") { name = name.dropLast() }
        if name.hasSuffix(".local") { name = name.dropLast(6) }
        text = String(name)
    }

    /// Decodes a name in libavahi's notation: `\.`, `\\`, and `\DDD` for any other byte (avahi_unescape_label).
    ///
    /// Bytes that are not UTF-8 are replaced with U+FFFD.
    package static func decoding(_ escaped: some StringProtocol) -> String {
        guard escaped.utf8.contains(UInt8(ascii: "\\")) else { return String(escaped) }
        var bytes: [UInt8] = []
        var rest = Array(escaped.utf8)[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "\\") else {
                bytes.append(byte)
                continue
            }
            let digits = String(decoding: rest.prefix(3), as: UTF8.self)
            if digits.utf8.count == 3, digits.utf8.allSatisfy(\.isDigit), let value = UInt8(digits) {
                bytes.append(value)
                rest = rest.dropFirst(3)
            } else if let literal = rest.popFirst() {
                bytes.append(literal)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// True if the responder draws a new name at each start, so that the name identifies nothing.
    ///
    /// Android 13 and later announce `Android_` and 32 hexadecimal digits (MdnsAdvertiser.generateHostname). Other
    /// responders use a plain UUID.
    package var isRandom: Bool {
        let digits = text[(text.lastIndex(of: "_").map(text.index(after:)) ?? text.startIndex)...].filter { $0 != "-" }
        return digits.utf8.count == 32 && digits.allSatisfy { $0.isASCII && $0.isHexDigit }
    }

    /// The part that stays the same: `android` for a random name of Android, else the whole name. May be empty.
    package var stablePart: Substring {
        guard isRandom else { return text[...] }
        return text[..<(text.lastIndex(of: "_") ?? text.startIndex)]
    }

    /// The name without a number behind a hyphen: `mac` for `mac-2`. Nil if there is no such number.
    package var withoutNumber: Substring? { numbered?.stem }

    /// Returns whether both names may belong to one device at one address.
    ///
    /// Both are random, or a responder made one from the other after a name conflict. Equal names need no evidence.
    package func mayBeRenamed(from other: MachineName) -> Bool {
        self == other || isRandom && other.isRandom || isAlternative(to: other) || other.isAlternative(to: self)
    }

    /// Returns whether a responder chooses this name after a conflict on the other one.
    ///
    /// Avahi (avahi_alternative_host_name), ESP-IDF (_mdns_mangle_name) and mDNSResponder (IncrementLabelSuffix) append
    /// `-2` and then count. systemd-resolved appends a number without hyphen (manager_next_random_name). Several
    /// conflicts may pass before the new name is seen, so a name without number may get any number.
    private func isAlternative(to other: MachineName) -> Bool {
        if let number = numbered, let old = other.numbered, number.stem == old.stem {
            return number.value == old.value + 1
        }
        guard text.hasPrefix(other.text), !other.text.isEmpty else { return false }
        var suffix = text.dropFirst(other.text.count)
        if suffix.hasPrefix("-") {
            suffix = suffix.dropFirst()
        } else if other.text.utf8.last.map(\.isDigit) == true {
            return false
        }
        return Self.number(suffix).map { $0 > 1 } ?? false
    }

    /// The parts of a name that ends with a hyphen and a number.
    private var numbered: (stem: Substring, value: Int)? {
        guard let hyphen = text.lastIndex(of: "-"), hyphen != text.startIndex,
            let value = Self.number(text[text.index(after: hyphen)...])
        else { return nil }
        return (text[..<hyphen], value)
    }

    /// Parses up to five digits without a leading zero.
    private static func number(_ text: Substring) -> Int? {
        guard (1...5).contains(text.utf8.count), text.utf8.allSatisfy(\.isDigit), !text.hasPrefix("0") else {
            return nil
        }
        return Int(text)
    }
}

/// The name of a Bonjour service instance.
package enum BonjourInstance {
    /// Removes the suffix of a renamed instance. When two devices run the same app, the second becomes `Name (2)`
    /// (mDNSResponder, Android) or `Name #2` (Avahi).
    package static func withoutConflictSuffix(_ instance: String) -> String {
        guard let space = instance.lastIndex(of: " ") else { return instance }
        let suffix = instance[instance.index(after: space)...]
        let isApple = suffix.hasPrefix("(") && suffix.hasSuffix(")") && Int(suffix.dropFirst().dropLast()) != nil
        let isAvahi = suffix.hasPrefix("#") && Int(suffix.dropFirst()) != nil
        return isApple || isAvahi ? String(instance[..<space]) : instance
    }
}

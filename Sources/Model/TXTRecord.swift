import FoundationEssentials

/// The key/value pairs of a Bonjour service (RFC 6763, section 6), in received order.
///
/// The three forms of the RFC are kept apart: `key` (an attribute without value), `key=` (an empty value) and
/// `key=value`, where the value is bytes. The first of several equal keys counts, and keys are compared without case.
/// Items without a key (`=value`) are ignored (section 6.4).
package struct TXTRecord: Hashable, Sendable {
    /// One pair. A nil value is an attribute without `=`.
    package struct Entry: Hashable, Sendable {
        package let key: String
        package let value: [UInt8]?

        /// The size in the record, with the length byte.
        fileprivate var size: Int { key.utf8.count + (value.map { $0.count + 1 } ?? 0) + 1 }
    }

    package private(set) var entries: [Entry] = []

    /// The maximum size of a record in bytes (RFC 6763, section 6.2). The rest of a received record is ignored.
    package static let byteLimit = 1_300
    package static let keyLimit = 32

    /// True if a received record exceeded a limit and is incomplete.
    package private(set) var isTruncated = false

    package init() {}

    /// The keys that the broker itself reads, in lower case. A record above a limit loses its other keys first.
    package static let usedKeys: Set<String> = [
        "auth", "authcode", "boot", "bundleid", "device_id", "deviceid", "id", "mcp_path", "pair", "path",
        "project_name",
        "role", "transport", "v", "ver", "version", "via", "ws_uri",
    ]

    /// Parses the strings of a received record. Malformed strings are ignored.
    ///
    /// A record above a limit keeps the keys that the broker uses, and of the others the first ones.
    package init(items: some Sequence<[UInt8]>) {
        var keys: Set<String> = []
        let received = items.compactMap(Self.entry).filter { keys.insert($0.key.lowercased()).inserted }
        guard received.count > Self.keyLimit || received.reduce(0, { $0 + $1.size }) > Self.byteLimit else {
            entries = received
            return
        }
        isTruncated = true
        var kept: [Int: Entry] = [:]
        var bytes = 0
        for isUsed in [true, false] {
            for (index, entry) in received.enumerated() where Self.usedKeys.contains(entry.key.lowercased()) == isUsed {
                guard bytes + entry.size <= Self.byteLimit, kept.count < Self.keyLimit else { break }
                bytes += entry.size
                kept[index] = entry
            }
        }
        entries = kept.sorted { $0.key < $1.key }.map(\.value)
    }

    /// The strings to publish, in order. Each has at most 255 bytes if `validationError` is nil.
    package var items: [[UInt8]] {
        entries.map { entry in
            Array(entry.key.utf8) + (entry.value.map { [UInt8(ascii: "=")] + $0 } ?? [])
        }
    }

    /// Returns the value of a key as text. Returns nil if the key is absent, or has no value or a value that is not
    /// UTF-8.
    package subscript(_ key: String) -> String? {
        guard let value = entries.first(where: { Self.same($0.key, key) })?.value else { return nil }
        return String(validating: value, as: UTF8.self)
    }

    package func contains(_ key: String) -> Bool {
        entries.contains { Self.same($0.key, key) }
    }

    /// Sets a key. An existing key keeps its position. A nil value creates an attribute without `=`.
    package mutating func set(_ key: String, to value: [UInt8]?) {
        let entry = Entry(key: key, value: value)
        if let index = entries.firstIndex(where: { Self.same($0.key, key) }) {
            entries[index] = entry
        } else {
            entries.append(entry)
        }
    }

    /// The reason why this record cannot be published, as a sentence. Nil if it is valid.
    package var validationError: String? {
        for (entry, item) in zip(entries, items) {
            if !Self.isKey(entry.key) {
                return
                    "the TXT key \"\(SanitizedText(entry.key))\" must be printable ASCII without \"=\" (RFC 6763, 6.4)"
            }
            if item.count > 255 { return "the TXT item \"\(entry.key)\" has \(item.count) bytes; at most 255 fit" }
        }
        let size = items.reduce(0) { $0 + $1.count + 1 }
        if size > Self.byteLimit { return "the TXT record has \(size) bytes; at most \(Self.byteLimit) are published" }
        if entries.count > Self.keyLimit {
            return "the TXT record has \(entries.count) keys; at most \(Self.keyLimit) are published"
        }
        return nil
    }

    /// Parses one string; nil if it has no valid key.
    private static func entry(of item: [UInt8]) -> Entry? {
        let split = item.firstIndex(of: UInt8(ascii: "="))
        guard let key = String(validating: item[..<(split ?? item.endIndex)], as: UTF8.self), isKey(key) else {
            return nil
        }
        return Entry(key: key, value: split.map { Array(item[($0 + 1)...]) })
    }

    private static func isKey(_ key: String) -> Bool {
        !key.isEmpty && key.utf8.allSatisfy { (0x20...0x7E).contains($0) && $0 != UInt8(ascii: "=") }
    }

    private static func same(_ one: String, _ other: String) -> Bool { one.lowercased() == other.lowercased() }
}

/// Encodes as an array of `{"key": …}` objects, which keeps the order.
///
/// `value` holds text, `base64` holds bytes that are not printable UTF-8, and an attribute without value has neither.
extension TXTRecord: Codable {
    private struct Pair: Codable {
        var key: String
        var value: SanitizedText?
        var base64: Data?
    }

    package init(from decoder: any Decoder) throws {
        self.init()
        for pair in try [Pair](from: decoder) {
            set(pair.key, to: pair.base64.map { Array($0) } ?? pair.value.map { Array($0.text.utf8) })
        }
    }

    package func encode(to encoder: any Encoder) throws {
        let pairs = entries.map { entry in
            guard let value = entry.value else { return Pair(key: entry.key) }
            let text = String(validating: value, as: UTF8.self)
            if let text, SanitizedText(text, limit: .max).text == text {
                return Pair(key: entry.key, value: SanitizedText(text, limit: .max))
            }
            return Pair(key: entry.key, base64: Data(value))
        }
        try pairs.encode(to: encoder)
    }
}

import FoundationEssentials
package import Model

/// The index of stored artifacts: their holders and expiry times. It has neither the bytes nor any I/O.
///
/// The number of entries and of bytes is limited; the entry that expires first is removed to make room. All times are
/// relative to one fixed moment.
struct ArtifactIndex: Sendable {
    /// A stored artifact, without its bytes.
    struct Entry: Hashable, Sendable {
        let mimeType: String
        let size: Int
        /// The holders of the calls that returned the artifact.
        var holders: Set<String>
        var expires: Duration
    }

    static let lifetime = Duration.seconds(3_600)

    let maxEntries: Int
    let maxBytes: Int
    private(set) var entries: [String: Entry] = [:]
    private(set) var usedBytes = 0

    init(maxEntries: Int = 200, maxBytes: Int = 256 << 20) {
        self.maxEntries = maxEntries
        self.maxBytes = maxBytes
    }

    func fits(_ size: Int) -> Bool { size <= maxBytes }

    /// Adds an artifact. An existing one gets another holder and a new lifetime of 1 h.
    ///
    /// Returns the hashes of the removed entries.
    mutating func put(
        _ sha: String,
        mimeType: String,
        size: Int,
        for holder: String,
        at now: Duration
    ) -> [String] {
        let holders = entries[sha].map { $0.expires > now ? $0.holders : [] } ?? []
        let entry = Entry(
            mimeType: mimeType,
            size: size,
            holders: holders.union([holder]),
            expires: now + Self.lifetime
        )
        return put(sha, entry, at: now)
    }

    /// Adds a restored artifact with its remaining lifetime.
    ///
    /// Returns the hashes of the removed entries.
    mutating func put(_ sha: String, _ entry: Entry, at now: Duration) -> [String] {
        // An old entry with the same content is replaced.
        remove(sha)
        var removed = expire(at: now)
        while usedBytes + entry.size > maxBytes || entries.count >= maxEntries,
            let oldest = entries.min(by: { ($0.value.expires, $0.key) < ($1.value.expires, $1.key) })?.key
        {
            remove(oldest)
            removed.append(oldest)
        }
        entries[sha] = entry
        usedBytes += entry.size
        return removed
    }

    /// Removes the expired entries and returns their hashes.
    mutating func expire(at now: Duration) -> [String] {
        let removed = entries.filter { $0.value.expires <= now }.map(\.key).sorted()
        for sha in removed { remove(sha) }
        return removed
    }

    /// Returns an artifact of a holder; any artifact if the holder is nil.
    ///
    /// The result is nil for an artifact of other holders too, so that its existence is not revealed.
    func find(_ sha: String, for holder: String?, at now: Duration) -> Entry? {
        guard let entry = entries[sha], entry.expires > now else { return nil }
        guard let holder else { return entry }
        return entry.holders.contains(holder) ? entry : nil
    }

    mutating func remove(_ sha: String) {
        if let entry = entries.removeValue(forKey: sha) { usedBytes -= entry.size }
    }
}

/// The metadata file of an artifact, from which the next run of the broker restores the holders and the expiry.
struct ArtifactMetadata: Hashable, Codable {
    let mimeType: String
    let size: Int
    let holders: Set<String>
    let expiresAt: Date

    init(_ entry: ArtifactIndex.Entry, expiresAt: Date) {
        mimeType = entry.mimeType
        size = entry.size
        holders = entry.holders
        self.expiresAt = expiresAt
    }

    /// Returns the entry for an index; nil if the artifact has expired.
    ///
    /// The remaining lifetime is limited to 1 h, so that a wrong clock cannot extend it.
    ///
    /// - Parameters:
    ///   - now: The current time of the index.
    ///   - date: The current date.
    /// - Returns: The entry.
    func entry(at now: Duration, on date: Date) -> ArtifactIndex.Entry? {
        let left = min(.seconds(expiresAt.timeIntervalSince(date)), ArtifactIndex.lifetime)
        guard left > .zero else { return nil }
        return ArtifactIndex.Entry(mimeType: mimeType, size: size, holders: holders, expires: now + left)
    }
}

/// A reference to a stored artifact in a result: a `resource_link`.
package struct ArtifactLink: Hashable, Sendable {
    package let sha: String
    package let mimeType: String
    package let size: Int

    package var uri: String { ArtifactStore.scheme + sha }

    /// Returns the content block, in the form of 2025-06-18 and later.
    ///
    /// - Parameter reason: The reason why the content is not in the result.
    /// - Returns: The block.
    package func block(because reason: String? = nil) -> JSON {
        var block: JSONObject = [
            "type": "resource_link", "uri": .string(uri), "name": .string(name), "mimeType": .string(mimeType),
            "size": .number(JSONNumber(size)),
        ]
        block["description"] = reason.map { .string($0) }
        return .object(block)
    }

    private var name: String {
        let ending =
            switch mimeType {
            case "image/png": ".png"
            case "image/jpeg": ".jpg"
            case "image/svg+xml": ".svg"
            case "image/webp", "image/heic", "image/avif", "image/gif": ".\(mimeType.dropFirst("image/".count))"
            case "video/mp4": ".mp4"
            case "application/json": ".json"
            case "text/plain": ".txt"
            default: ""
            }
        return "\(sha.prefix(8))\(ending)"
    }
}

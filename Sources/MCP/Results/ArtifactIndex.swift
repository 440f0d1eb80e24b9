import FoundationEssentials
package import JSON

/// What is kept, for whom, and until when; without the bytes and without I/O.
///
/// Bounded in things and in bytes: what was put there longest ago makes room. Times are since any fixed moment.
struct ArtifactIndex: Sendable {
    struct Thing: Hashable, Sendable {
        let mimeType: String
        let size: Int
        /// Those whose calls it came from.
        var holders: Set<String>
        var expires: Duration
    }

    static let lifetime = Duration.seconds(3_600)

    let places: Int
    let bytes: Int
    private(set) var things: [String: Thing] = [:]
    private(set) var used = 0

    init(places: Int = 200, bytes: Int = 256 << 20) {
        self.places = places
        self.bytes = bytes
    }

    func fits(_ size: Int) -> Bool { size <= bytes }

    /// Puts something there, or keeps what is there for one more holder and an hour more.
    ///
    /// Returns what had to go for it.
    mutating func put(
        _ sha: String,
        mimeType: String,
        size: Int,
        for holder: String,
        at now: Duration
    ) -> [String] {
        let holders = things[sha].map { $0.expires > now ? $0.holders : [] } ?? []
        let thing = Thing(
            mimeType: mimeType,
            size: size,
            holders: holders.union([holder]),
            expires: now + Self.lifetime
        )
        return put(sha, thing, at: now)
    }

    /// Puts something there that was there before, for as long as it says.
    ///
    /// Returns what had to go for it.
    mutating func put(_ sha: String, _ thing: Thing, at now: Duration) -> [String] {
        // The very same is there again, however old.
        remove(sha)
        var gone = expire(at: now)
        while used + thing.size > bytes || things.count >= places,
            let oldest = things.min(by: { ($0.value.expires, $0.key) < ($1.value.expires, $1.key) })?.key
        {
            remove(oldest)
            gone.append(oldest)
        }
        things[sha] = thing
        used += thing.size
        return gone
    }

    /// Takes away what is too old, and says what that was.
    mutating func expire(at now: Duration) -> [String] {
        let gone = things.filter { $0.value.expires <= now }.map(\.key).sorted()
        for sha in gone { remove(sha) }
        return gone
    }

    /// Nil also where it is there for others: nobody learns what others have. No holder is one who may see everything.
    func find(_ sha: String, for holder: String?, at now: Duration) -> Thing? {
        guard let thing = things[sha], thing.expires > now else { return nil }
        guard let holder else { return thing }
        return thing.holders.contains(holder) ? thing : nil
    }

    mutating func remove(_ sha: String) {
        if let thing = things.removeValue(forKey: sha) { used -= thing.size }
    }
}

/// What stands on the disk beside something that is kept, so that the broker's next run knows whose it is and until when.
struct ArtifactMetadata: Hashable, Codable {
    let mimeType: String
    let size: Int
    let holders: Set<String>
    let expires: Date

    init(_ thing: ArtifactIndex.Thing, expires: Date) {
        mimeType = thing.mimeType
        size = thing.size
        holders = thing.holders
        self.expires = expires
    }

    /// The same on a shelf whose time is `now` at that date; nil when it is too old. A clock that was wrong makes nothing live
    /// longer than it would have from now on.
    func thing(at now: Duration, on date: Date) -> ArtifactIndex.Thing? {
        let left = min(.seconds(expires.timeIntervalSince(date)), ArtifactIndex.lifetime)
        guard left > .zero else { return nil }
        return ArtifactIndex.Thing(mimeType: mimeType, size: size, holders: holders, expires: now + left)
    }
}

/// What stands in an answer for what is kept elsewhere: a `resource_link`.
package struct ArtifactLink: Hashable, Sendable {
    package let sha: String
    package let mimeType: String
    package let size: Int

    package var uri: String { ArtifactStore.scheme + sha }

    /// A content block, in the words of 2025-06-18 and later.
    ///
    /// - Parameter reason: Why it is not in the answer itself.
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
            case "application/json": ".json"
            case "text/plain": ".txt"
            default: ""
            }
        return "\(sha.prefix(8))\(ending)"
    }
}

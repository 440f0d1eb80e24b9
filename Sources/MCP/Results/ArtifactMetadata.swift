import FoundationEssentials

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

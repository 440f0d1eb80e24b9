import Model

/// The documents of the topics, shared by all event streams.
///
/// A document is read at most once a second for all clients that see the same one, and only while a stream asks.
actor TopicReader {
    private struct Key: Hashable {
        let topic: Topic
        let audience: String
    }

    private struct Entry {
        /// Nil until the first document was read.
        var document: [UInt8]?
        var readAt: ContinuousClock.Instant
    }

    /// The interval of a stream's reads. A document is kept for nearly as long, so that each interval has one read.
    static let interval = Duration.seconds(1)
    private static let lifetime = Duration.milliseconds(900)
    /// The time after which a document that no stream asks for is dropped.
    private static let retention = Duration.seconds(10)

    private var entries: [Key: Entry] = [:]

    /// The number of documents.
    var count: Int { entries.count }

    /// Returns the document of a topic for the clients of an audience, which all see the same one. `read` reads and encodes it.
    /// Returns nil if it cannot be read now.
    func document(
        of topic: Topic,
        for audience: String,
        at now: ContinuousClock.Instant = .now,
        _ read: @Sendable () async throws -> [UInt8]
    ) async -> [UInt8]? {
        let key = Key(topic: topic, audience: audience)
        let known = entries[key]
        if let known, known.document != nil, now - known.readAt < Self.lifetime { return known.document }
        entries = entries.filter { now - $0.value.readAt < Self.retention }
        // Set first, so that other streams meanwhile get the last document.
        entries[key] = Entry(document: known?.document, readAt: now)
        guard let document = try? await read() else { return known?.document }
        entries[key]?.document = document
        return document
    }
}

import JSON

/// Knows whether a request has its answer, also when it was sent twice.
struct ResponseDeduplicator {
    private let id: JSON?
    var isAnswered = false
    private var isAcknowledged = false

    init(_ id: JSON?) { self.id = id }

    /// Takes a message that came back.
    ///
    /// - Parameters:
    ///   - bytes: The message.
    ///   - isLast: Whether no other can follow it: then it is the answer.
    /// - Returns: The message read, when somebody wants it; nil where the client has it already.
    mutating func take(_ bytes: [UInt8], isLast: Bool) -> (() -> JSON?)? {
        if isLast {
            isAnswered = true
            return { try? JSON(parsing: bytes) }
        }
        let json = try? JSON(parsing: bytes)
        if let json, json["method"] == nil, json["id"] == id { isAnswered = true }
        // A subscription that was renewed after a restart is acknowledged anew.
        if json?["method"] == "notifications/subscriptions/acknowledged" {
            defer { isAcknowledged = true }
            if isAcknowledged { return nil }
        }
        return { json }
    }
}

import JSON
import SystemIO

/// What an app answered to one message.
struct UpstreamResponse: Sendable {
    let status: Int
    /// The value of `Mcp-Session-Id`, if it can be given back.
    let sessionID: String?
    /// Nil where none came: to a notification, or where the status says it all.
    let outcome: Result<JSON, RPCError>?
    /// Of the body.
    let size: Int
    /// Held while the answer is in memory as the app gave it; nil for one that is not heavy.
    var permit: Permit?
}

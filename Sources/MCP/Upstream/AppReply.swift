import JSON

/// What an app answered to a request: a result, or an error of its own.
struct AppReply: Sendable {
    let outcome: Result<JSONObject, RPCError>
    /// In bytes.
    let size: Int
}

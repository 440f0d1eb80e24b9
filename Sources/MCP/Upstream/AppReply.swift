import JSON
import SystemIO

/// What an app answered to a request: a result, or an error of its own.
struct AppReply: Sendable {
    let outcome: Result<JSONObject, RPCError>
    /// In bytes.
    let size: Int
    /// Held until the result has been made smaller; nil for one that is not heavy.
    var permit: Permit?
}

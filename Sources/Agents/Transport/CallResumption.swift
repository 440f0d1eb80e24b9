import Apps
import FoundationEssentials
import Model

/// The response to a call that lost its connection before the result, for example when the broker was killed.
///
/// A response stream begins with an event whose ID names the call (MCP 2025-11-25, transports, resumability). A client
/// that reconnects sends that ID. The broker therefore needs no record of the call and can respond after a restart too.
enum CallResumption {
    private static let prefix = "call-"
    /// The maximum length of an event ID in bytes.
    private static let limit = 512
    /// The reconnect delay in milliseconds. The MCP SDKs try twice, and the broker may need 1 s to restart.
    private static let retry = 1_000

    /// Returns the first event of a stream; nil if the request ID is too long.
    static func event(for id: RPCID) -> [UInt8]? {
        let name = prefix + Data(id.json.bytes).base64EncodedString()
        guard name.utf8.count <= limit else { return nil }
        return Array("id: \(name)\nretry: \(retry)\ndata:\n\n".utf8)
    }

    /// Returns the response to the call that an event ID names; nil if the ID names none.
    static func response(to eventID: String) -> JSON? {
        guard eventID.hasPrefix(prefix), eventID.utf8.count <= limit,
            let bytes = Data(base64Encoded: String(eventID.dropFirst(prefix.count))),
            let id = (try? JSON(parsing: Array(bytes))).flatMap(RPCID.init)
        else { return nil }
        return RPCMessage.response(id: id, .success(.object(result))).json
    }

    private static let result = JSONObject.toolFailure(
        """
        result unknown: the connection to the broker ended before the result of this call. The app may have executed \
        the call, or may not have received it. Look at the app's state before you call again.
        """,
        code: "response-lost"
    )
}

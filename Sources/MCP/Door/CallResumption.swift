import FoundationEssentials
import JSON

/// What a client hears of a call when its connection ended before the answer, as when the broker was killed.
///
/// The stream of an answer begins with an event whose id names the call (MCP 2025-11-25, transports, resumability). The client
/// shows that id when it comes back. So the broker needs no record of the call, and answers after a restart, too.
enum CallResumption {
    private static let prefix = "call-"
    /// In bytes of an event's id.
    private static let limit = 512
    /// The SDKs try twice; the broker may need a second to start again.
    private static let retry = 1_000

    /// The event that a stream begins with; nil where the call's id is too long.
    static func event(for id: RPCID) -> [UInt8]? {
        let name = prefix + Data(id.json.bytes).base64EncodedString()
        guard name.utf8.count <= limit else { return nil }
        return Array("id: \(name)\nretry: \(retry)\ndata:\n\n".utf8)
    }

    /// The answer to the call that an event's id names; nil where it names none.
    static func answer(to eventID: String) -> JSON? {
        guard eventID.hasPrefix(prefix), eventID.utf8.count <= limit,
            let bytes = Data(base64Encoded: String(eventID.dropFirst(prefix.count))),
            let id = (try? JSON(parsing: Array(bytes))).flatMap(RPCID.init)
        else { return nil }
        return RPCMessage.response(id: id, .success(.object(result))).json
    }

    private static let result = AppProxy.result(
        saying: """
            delivered, result unknown: the connection to the broker ended while this call was under way. The app may have \
            carried it out. Look at the app's state before you call again.
            """,
        code: "lost-after-delivery"
    )
}

/// A part of what comes back from an agent's door.
package enum MCPStreamEvent: Hashable, Sendable {
    /// It was taken. Comes first; `Mcp-Session-Id` is in the answer to `initialize`.
    case opened(session: String?)
    /// A JSON-RPC message on one line; `isLast` where no other can follow it.
    case message([UInt8], isLast: Bool)
    /// It was not taken; the status, and what is said about it. Comes alone.
    case refused(status: Int, [UInt8])
}

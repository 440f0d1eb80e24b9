package import JSON

/// What joins an answer to its request: JSON-RPC 2.0 allows texts and numbers, MCP no null.
package enum RPCID: Hashable, Sendable {
    case text(String)
    case number(JSONNumber)

    /// Nil for what is none, and for a text with half a surrogate pair in it, which is U+FFFD by then and would come back as
    /// another id.
    init?(_ json: JSON) {
        switch json {
        case .string(let text) where text.unicodeScalars.contains("\u{FFFD}"): return nil
        case .string(let text): self = .text(text)
        case .number(let number): self = .number(number)
        default: return nil
        }
    }

    package var json: JSON {
        switch self {
        case .text(let text): .string(text)
        case .number(let number): .number(number)
        }
    }
}

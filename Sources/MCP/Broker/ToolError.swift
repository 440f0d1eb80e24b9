/// Why a tool of ours did not do what it was asked: what happened to which thing, and what to do next.
///
/// It becomes a result with `isError`, so that the one who asked reads it, and not an error of the protocol.
struct ToolError: Error, Hashable, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}

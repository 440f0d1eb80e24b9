/// The way back to the caller: one whole answer, or a head and then events until the end.
///
/// It is used by one task. What it throws means that the caller is gone.
package protocol MCPResponseBodyWriter: ~Copyable {
    mutating func write(_ reply: MCPHTTPResponse) async throws
    /// Sends a head with status 200; then come only `send` and `end`.
    mutating func begin(_ headers: [MCPHTTPResponse.Header]) async throws
    mutating func send(_ bytes: [UInt8]) async throws
    mutating func end() async throws
}

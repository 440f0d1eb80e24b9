/// Where an app's server takes messages.
enum UpstreamTransport: Hashable, Sendable {
    /// As requests of HTTP, at that path.
    case http(path: String)
    /// A message a line on one stream, which is the session (MCP 2026-07-28, transports, stdio: over TCP, too).
    case lines
}

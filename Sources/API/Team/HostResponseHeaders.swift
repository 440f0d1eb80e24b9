import HTTPTypes
import HummingbirdCore
import Metrics
import Model

/// The headers of another broker's response that the client gets.
///
/// The broker of a host that was taken over can send any header. A header like `Access-Control-Allow-Origin`, `Location` or
/// `WWW-Authenticate` would speak for this broker to its own clients. So only headers that the routes of a host need pass,
/// each with its first value, and the rest is counted.
struct HostResponseHeaders {
    let fields: HTTPFields
    /// The number of headers that were left out.
    let droppedCount: Int

    /// The headers of one connection, which concern no client (RFC 9110, section 7.6.1), and those that this broker sets
    /// itself (`APIServer.setSecurityHeaders`). Every broker sends them.
    private static let replaced: Set = [
        "connection", "keep-alive", "transfer-encoding", "date", "server", "cache-control", "x-content-type-options",
        "referrer-policy",
    ]
    private static let allowed: Set = [
        "content-type", "content-length", "mcp-session-id", "mcp-protocol-version", "retry-after",
    ]
    /// The media types of answers of the API, of MCP servers, of event streams, and of pictures of screens.
    private static let mediaTypes: Set = [
        "application/json", "application/problem+json", "text/event-stream", "image/png", "image/jpeg",
    ]
    /// The media type in place of any other one. No browser displays it.
    private static let unknownType = "application/octet-stream"

    init(_ headers: [(name: String, value: String)]) {
        var fields = HTTPFields()
        var droppedCount = 0
        for (text, value) in headers {
            let lowercased = text.lowercased()
            if Self.replaced.contains(lowercased) { continue }
            guard Self.allowed.contains(lowercased), let name = HTTPField.Name(text), fields[name] == nil else {
                droppedCount += 1
                continue
            }
            fields[name] = value
        }
        if let type = fields[.contentType] {
            let essence = type.prefix { $0 != ";" && $0 != " " }.lowercased()
            let isAllowed = Self.mediaTypes.contains(essence)
            // Parameters such as a charset could change the meaning of the text.
            fields[.contentType] = isAllowed ? essence : Self.unknownType
            if !isAllowed { droppedCount += 1 }
        }
        (self.fields, self.droppedCount) = (fields, droppedCount)
    }

    /// Counts the headers that were left out.
    func count(of host: HostName) {
        guard droppedCount > 0 else { return }
        Counter(label: MetricDefinition.droppedHostHeaders.name, dimensions: [("host", host.text)])
            .increment(by: droppedCount)
    }
}

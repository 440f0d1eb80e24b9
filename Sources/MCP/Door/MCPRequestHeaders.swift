/// The header fields that MCP knows, each with every value it came with: two of one kind are an error in 2026-07-28.
package struct MCPRequestHeaders: Hashable, Sendable {
    package let accept: [String]
    package let revision: [String]
    package let session: [String]
    package let method: [String]
    package let name: [String]
    /// Which event a client had last on a stream that broke.
    let lastEvent: [String]
    /// It was a line of standard input before `patchbay mcp` made a request of it: its client knows of no headers.
    let isFromLines: Bool
    /// What a tool wants to have beside its arguments, by the field's name in lower case.
    let parameters: [String: [String]]

    /// - Parameters:
    ///   - values: Every value of the field of that name, in any case.
    ///   - fields: Every field, of which those that begin with `Mcp-Param-` are taken.
    package init(values: (String) -> [String], fields: some Sequence<(name: String, value: String)>) {
        accept = values("Accept")
        revision = values("MCP-Protocol-Version")
        session = values("Mcp-Session-Id")
        method = values("Mcp-Method")
        name = values("Mcp-Name")
        lastEvent = values("Last-Event-ID")
        isFromLines = values("Patchbay-Transport") == ["stdio"]
        var parameters: [String: [String]] = [:]
        for field in fields {
            let name = field.name.lowercased()
            if name.hasPrefix("mcp-param-") { parameters[name, default: []].append(field.value) }
        }
        self.parameters = parameters
    }

    /// A caller that says nothing takes what there is.
    var takesJSON: Bool {
        accept.isEmpty || media.contains { ["application/json", "application/*", "*/*"].contains($0) }
    }

    /// Only one that says so can be expected to read events.
    var takesEvents: Bool { media.contains("text/event-stream") }

    private var media: [String] {
        accept.flatMap { $0.split(separator: ",") }.map { $0.prefix { $0 != ";" }.filter { $0 != " " }.lowercased() }
    }
}

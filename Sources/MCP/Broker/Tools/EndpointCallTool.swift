import AccessControl
import JSON
import Model

/// Calls a tool of an app.
struct EndpointCallTool: BrokerTool {
    private static let endpoint = ToolParameter.endpoint
    private static let name = ToolParameter.text("name", "tool")
    private static let arguments = ToolParameter.object("arguments")
    private static let wait = ToolParameter.number("waitSeconds", in: 0...60, "for an offline app; default 10")
    private static let timeout = ToolParameter.number("timeoutSeconds", in: 1...120, "total; default 15")
    private static let maxPixels = ToolParameter.number(
        "maxPixels",
        in: 0...4_096,
        "image edge, default 1568; 0: original"
    )

    let definition = ToolDefinition(
        name: "endpoint_call",
        description: "Calls a tool of an app; waits for one that restarts. Errors say what to do next.",
        scope: .endpointCall,
        required: [Self.endpoint, Self.name],
        optional: [Self.arguments, Self.wait, Self.timeout, Self.maxPixels],
        annotations: ["openWorldHint": true]
    )
    let directory: EndpointDirectory
    let apps: any AppCaller

    func call(_ request: ToolRequest, for principal: Principal) async throws(ToolError) -> ToolResult {
        let endpoint = try await directory.endpoint(matching: request.required(Self.endpoint), for: principal)
        let call = ToolCall(
            try request.required(Self.name),
            of: endpoint,
            arguments: try request[Self.arguments] ?? [:],
            wait: .seconds(try request[Self.wait] ?? 10),
            timeout: try request[Self.timeout].map { .seconds($0) },
            maxPixels: try request[Self.maxPixels] ?? 1_568,
            notify: request.notify
        )
        do { return ToolResult(forwarding: try await apps.call(call, of: principal)) } catch {
            return ToolResult(forwarding: error.result(for: .brokerAgent, at: endpoint.id))
        }
    }
}

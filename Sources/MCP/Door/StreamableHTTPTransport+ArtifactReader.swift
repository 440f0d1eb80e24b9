import FoundationEssentials
import JSON

/// What results refer to because it is too large for them.
extension StreamableHTTPTransport {
    private static let prefix = "patchbay://artifact/"

    /// Nil for what the server is asked.
    func artifact(_ request: MCPRequest, of caller: AgentCaller) async throws(RPCError) -> JSONObject? {
        guard let artifacts, request.method == "resources/read", let uri = request.params["uri"]?.string,
            uri.hasPrefix(Self.prefix)
        else { return nil }
        guard let artifact = await artifacts.artifact(String(uri.dropFirst(Self.prefix.count)), for: caller) else {
            throw .unknownResource(uri)
        }
        var content: JSONObject = ["uri": .string(uri), "mimeType": .string(artifact.mimeType)]
        if artifact.isText, let text = String(validating: artifact.bytes, as: UTF8.self) {
            content["text"] = .string(text)
        } else {
            content["blob"] = .string(Data(artifact.bytes).base64EncodedString())
        }
        return ["contents": [.object(content)]]
    }
}

extension Artifact {
    fileprivate var isText: Bool { mimeType.hasPrefix("text/") || mimeType == "application/json" }
}

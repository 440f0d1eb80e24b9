import AccessControl
import Apps
import FoundationEssentials
import Model

/// The resources of artifacts, which results refer to if their content is too large.
struct ArtifactResources: Sendable {
    private static let prefix = "patchbay://artifact/"

    let reader: any ArtifactReader

    init(_ reader: any ArtifactReader) { self.reader = reader }

    /// Returns the result of a request that reads an artifact; nil for any other request.
    func read(_ request: MCPRequest, of principal: Principal) async throws(RPCError) -> JSONObject? {
        guard request.method == "resources/read", let uri = request.params["uri"]?.string, uri.hasPrefix(Self.prefix)
        else { return nil }
        guard let artifact = await reader.artifact(String(uri.dropFirst(Self.prefix.count)), for: principal) else {
            throw .resourceNotFound(
                uri,
                suggestion: "; content of results is kept for an hour, for the client that called: call the tool again"
            )
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

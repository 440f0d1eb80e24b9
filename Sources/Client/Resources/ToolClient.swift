package import Model
import NIOHTTP1

/// The tools of apps.
package struct ToolClient: Sendable {
    let client: any APIClient

    /// Maximum size of an artifact in bytes; the broker stores no larger one.
    private static let artifactLimit = 256 << 20

    /// Returns the tools of an app, from the broker's cache while the app is unavailable.
    package func list(of id: EndpointID) async throws -> ToolList {
        let request = OutgoingRequest(method: .GET, path: ["endpoints", id.text, "tools"])
        let response = try await json(of: request, extraTimeout: .seconds(20))
        guard let tools = response["tools"]?.array?.compactMap(\.object) else {
            throw invalidResponse(to: request, "it has no tools")
        }
        return ToolList(
            tools: tools,
            isStale: response["stale"]?.bool ?? false,
            hasChanged: response["changed"]?.bool ?? false,
            limit: response["limit"]?.string,
            reason: response["reason"]?.string,
            hint: response["hint"]?.string
        )
    }

    /// Calls a tool of an app.
    ///
    /// - Parameters:
    ///   - tool: Name of the tool.
    ///   - id: ID of the app's endpoint.
    ///   - arguments: Arguments that match the tool's schema.
    ///   - wait: Maximum time in seconds to wait for an app that is unavailable.
    ///   - timeout: Maximum duration of the call in seconds.
    ///   - maxPixels: Maximum edge length of an image in the result; 0 for links to the originals.
    ///   - imageFormat: Format of the images in the result, `png` or `jpeg`; nil for any.
    ///   - trace: Trace context of the call.
    /// - Returns: A `CallToolResult`, which may report a failure of the tool.
    /// - Throws: `ClientError`.
    package func call(
        _ tool: String,
        of id: EndpointID,
        arguments: JSONObject,
        wait: Int? = nil,
        timeout: Int? = nil,
        maxPixels: Int? = nil,
        imageFormat: String? = nil,
        trace: TraceContext? = nil
    ) async throws -> JSONObject {
        var body: JSONObject = ["tool": .string(tool), "arguments": .object(arguments)]
        body["waitSeconds"] = wait.map { .number(JSONNumber($0)) }
        body["timeoutSeconds"] = timeout.map { .number(JSONNumber($0)) }
        body["maxPixels"] = maxPixels.map { .number(JSONNumber($0)) }
        body["imageFormat"] = imageFormat.map { .string($0) }
        var request = OutgoingRequest(
            method: .POST,
            path: ["endpoints", id.text, "call"],
            body: JSON.object(body).bytes
        )
        request.headers += trace?.headers ?? []
        // A tool may run for two minutes.
        let response = try await json(of: request, extraTimeout: .seconds((wait ?? 10) + 120))
        guard let result = response["result"]?.object else {
            throw invalidResponse(to: request, "it has no result")
        }
        return result
    }

    /// Returns the artifact that a result links to as `patchbay://artifact/SHA`, and its media type.
    ///
    /// - Throws: `ClientError`.
    package func artifact(_ sha: String) async throws -> (bytes: [UInt8], mediaType: String?) {
        let request = OutgoingRequest(method: .GET, path: ["artifacts", sha])
        let (headers, bytes) = try await client.send(request, extraTimeout: .zero, limit: Self.artifactLimit)
        return (bytes, headers.first(name: "Content-Type"))
    }

    private func json(of request: OutgoingRequest, extraTimeout: Duration) async throws -> JSON {
        let bytes = try await client.bytes(of: request, extraTimeout: extraTimeout)
        do throws(JSONError) { return try await JSON.parse(bytes, maxDepth: JSON.maxBrokerDepth) } catch {
            throw invalidResponse(to: request, error.description)
        }
    }

    private func invalidResponse(to request: OutgoingRequest, _ detail: String) -> ClientError {
        .invalidResponse(what: "the answer to \(request.name)", detail: detail)
    }
}

package import JSON
package import Model
import NIOHTTP1

/// The apps' own tools.
extension PatchbayClient {
    /// What an app offers, from the broker's cache while the app is away.
    package func tools(of id: EndpointID) async throws -> ToolList {
        let call = OutgoingRequest(method: .GET, path: ["endpoints", id.text, "tools"])
        let answer = try json(try await bytes(of: call, extraPatience: .seconds(20)), of: call)
        guard let tools = answer["tools"]?.array?.compactMap(\.object) else { throw misfit(call, "it has no tools") }
        return ToolList(
            tools: tools,
            isStale: answer["stale"]?.bool ?? false,
            hasChanged: answer["changed"]?.bool ?? false,
            reason: answer["reason"]?.string,
            next: answer["next"]?.string
        )
    }

    /// Calls a tool of an app.
    ///
    /// - Parameters:
    ///   - tool: Its name.
    ///   - id: The app's.
    ///   - arguments: As its schema wants them.
    ///   - wait: For how many seconds an app is waited for that is away.
    ///   - timeout: How many seconds the call may take in all.
    ///   - maxPixels: The longest edge of an image in the result; 0 for links to the originals.
    /// - Returns: A `CallToolResult`, which may say that the tool failed.
    /// - Throws: `ClientError`.
    package func call(
        _ tool: String,
        of id: EndpointID,
        arguments: JSONObject,
        wait: Int? = nil,
        timeout: Int? = nil,
        maxPixels: Int? = nil
    ) async throws -> JSONObject {
        var body: JSONObject = ["tool": .string(tool), "arguments": .object(arguments)]
        body["wait_s"] = wait.map { .number(JSONNumber($0)) }
        body["timeout_s"] = timeout.map { .number(JSONNumber($0)) }
        body["max_px"] = maxPixels.map { .number(JSONNumber($0)) }
        let call = OutgoingRequest(method: .POST, path: ["endpoints", id.text, "call"], body: JSON.object(body).bytes)
        // A tool may take two minutes.
        let bytes = try await bytes(of: call, extraPatience: .seconds((wait ?? 10) + 120))
        guard let result = try json(bytes, of: call)["result"]?.object else { throw misfit(call, "it has no result") }
        return result
    }

    /// What a result links to as `patchbay://artifact/SHA`.
    ///
    /// - Throws: `ClientError`.
    package func artifact(_ sha: String) async throws -> [UInt8] {
        try await bytes(of: OutgoingRequest(method: .GET, path: ["artifacts", sha]), limit: Self.artifactLimit)
    }

    /// No larger one is kept.
    private static let artifactLimit = 256 << 20

    private func json(_ bytes: [UInt8], of call: OutgoingRequest) throws(ClientError) -> JSON {
        do throws(JSONError) { return try JSON(parsing: bytes) } catch { throw misfit(call, error.description) }
    }

    private func misfit(_ call: OutgoingRequest, _ detail: String) -> ClientError {
        .notUnderstood(what: "the answer to \(call.name)", detail: detail)
    }
}

import AccessControl
import Model
import SystemIO

/// Answers MCP requests with the plain HTTP requests of a profile.
struct ProfileTransport: UpstreamTransport {
    let client: ProfileClient
    let artifacts: ArtifactStore

    private var profile: Profile { client.profile }

    func isUsable(over routes: [AuthorizedRoute]) async -> Bool { routes.contains { $0.route == client.route } }

    /// Answers a request. Notifications have no effect, and there is no stream of the server's own messages.
    ///
    /// - Throws: `AppError`, `CancellationError`.
    func exchange(
        _ message: UpstreamMessage,
        by routes: [AuthorizedRoute],
        handler: UpstreamMessageHandler
    ) async throws -> UpstreamResponse {
        // MCP 2025-03-26 and later: 405 says that there is no such stream.
        guard message.json != nil else { return UpstreamResponse(status: 405, outcome: nil) }
        guard message.id != nil else { return UpstreamResponse(status: 202, outcome: nil) }
        // The handshake was done over this route only.
        guard let authorized = routes.first(where: { $0.route == client.route }) else { throw AppError.unwritten }
        let (turn, attempt) = try await client.begin(message, by: authorized)
        defer { turn.release() }
        do {
            return try await answer(message, attempt, handler.redactor)
        } catch let refusal as ProfileRefusal {
            let reason = "\(client.endpoint): \(refusal.reason)"
            guard message.method == "tools/call" else {
                return UpstreamResponse(outcome: .failure(.internalError(reason)))
            }
            // Models read results and not protocol errors.
            return UpstreamResponse(outcome: .success(.object(.toolFailure(reason, code: refusal.code))))
        }
    }

    private func answer(
        _ request: UpstreamMessage,
        _ attempt: ProfileClient.Attempt,
        _ redactor: TokenRedactor
    ) async throws -> UpstreamResponse {
        switch request.method {
        case "initialize":
            return UpstreamResponse(outcome: .success(description(of: try await client.recognize(attempt))))
        case "tools/list":
            let tools = profile.allTools(with: try await client.listFunctions(attempt))
            return UpstreamResponse(outcome: .success(redactor.redact(["tools": .array(tools.map(\.json))])))
        case "tools/call":
            let arguments = request.params["arguments"]?.object ?? [:]
            let tool = try await client.tool(named: request.params["name"]?.string ?? "", attempt)
            let (sent, response) = try await client.call(tool, arguments, attempt)
            let subject = "\(tool.name) (\(SanitizedText("\(sent)", limit: 200)))"
            var result = try await result(of: tool, arguments, response.content, attempt, subject)
            if result["isError"] == true {
                let reason = result["content"]?.array?.first?["text"]?.string ?? ""
                result["content"] = [["type": "text", "text": .string("\(client.endpoint): \(subject): \(reason)")]]
            }
            return UpstreamResponse(
                outcome: .success(redactor.redact(.object(result))),
                size: response.content.body.count,
                reservation: response.reservation
            )
        default: return UpstreamResponse(outcome: .failure(.methodNotFound(request.method)))
        }
    }

    /// Returns the result of `initialize`.
    private func description(of server: ServerIdentity) -> JSON {
        var info: JSONObject = [
            "name": .string(server.app?.text ?? profile.name), "title": .string(profile.title),
        ]
        info["version"] = server.version.map { .string($0.text) }
        let abilities = profile.abilities
        let instructions = [
            ("Capabilities", abilities.capabilities.joined(separator: ", ")),
            ("Limits", abilities.limits.joined(separator: "; ")),
        ].filter { !$0.1.isEmpty }.map { "\($0.0): \($0.1)." }
        return [
            "protocolVersion": .string(ProtocolVersion.latestWithHandshake.rawValue), "capabilities": ["tools": [:]],
            "serverInfo": .object(info), "instructions": .string(instructions.joined(separator: "\n")),
        ]
    }

    /// Converts a response to the result of the tool. A video is stored, and the result has a link.
    private func result(
        of tool: ProfileTool,
        _ arguments: JSONObject,
        _ response: AppResponse,
        _ attempt: ProfileClient.Attempt,
        _ subject: String
    ) async throws -> JSONObject {
        let result: ProfileResult
        var repairs = JSONRepairs()
        do { result = try profile.result(of: tool, arguments: arguments, response: response, repairs: &repairs) } catch
        {
            guard case .invalidResponse(let reason) = error else { throw error.appError }
            throw AppError.invalidResponse("\(reason) to \(subject)")
        }
        for repair in repairs.first { client.record(repair.kind.deviation) }
        switch result {
        case .content(let content): return repairs.note().map { content.withNote($0) } ?? content
        case .video(let bytes):
            let principal = attempt.admission?.principal ?? .broker
            do throws(ArtifactError) {
                let link = try await artifacts.save(bytes, mimeType: "video/mp4", for: principal)
                let note = "an MP4 file of \(bytes.count) bytes, readable for an hour at \(link.uri)"
                return ["content": [link.block(), ["type": "text", "text": .string("[\(note)]")]]]
            } catch {
                let reason = "\(tool.name) was called, but its video could not be stored: \(error)"
                throw ProfileRefusal(reason: reason, code: "not-stored")
            }
        }
    }
}

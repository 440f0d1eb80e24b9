import AccessControl
import JSON
import Model
import SystemIO

/// The check of a tool call's arguments against the tool's schema.
extension ToolCatalog {
    /// Throws if the listed schema of a tool does not allow the arguments of a call.
    ///
    /// A tool of an app that was never listed passes: the app validates the arguments itself. A call without a permission
    /// passes too: the sender refuses it with the reason.
    /// - Parameters:
    ///   - request: The call.
    ///   - id: The app.
    ///   - principal: The caller.
    ///   - wait: The wait time for an offline app. The app may return with another schema.
    /// - Throws: `AppError.invalidArguments`, `CancellationError`.
    func requireValidArguments(
        _ request: MCPRequest,
        at id: EndpointID,
        for principal: Principal,
        wait: Duration
    ) async throws {
        guard let tool = request.tool, let endpoint = try? await pool.endpoint(id),
            principal.may(.endpointCall, on: endpoint)
        else { return }
        do { try await sender.requireTool(request, at: id, for: principal) } catch { return }
        guard await problem(with: request, tool, at: id) != nil else { return }
        // The app may have been rebuilt with another schema since it was listed. If it does not answer in time, the last
        // known schema decides.
        let limit = min(wait + timeouts.list, request.timeout ?? wait + timeouts.list)
        do {
            _ = try await withTimeout(limit, clock: clock) {
                try await freshList(CachedApp.tools, of: id, for: principal, wait: wait)
            }
        } catch let error as AppError {
            guard Self.allowsCachedList(error) else { return }
        } catch is RPCError {
            // The app answers, but has no list any more.
        }
        guard let problem = await problem(with: request, tool, at: id) else { return }
        let failure = AppError.invalidArguments(tool: tool, problem: problem)
        await sender.recordRefusal(failure, of: request, at: id, for: principal)
        throw failure
    }

    /// Returns the schema of a tool's arguments; nil if the app does not list the tool.
    func schema(of tool: String, at id: EndpointID) async -> JSON? { await cache.record(of: id).schema(of: tool) }

    private func problem(with request: MCPRequest, _ tool: String, at id: EndpointID) async -> String? {
        let arguments = request.params["arguments"].flatMap { $0.isNull ? nil : $0 } ?? [:]
        guard let schema = await schema(of: tool, at: id) else { return nil }
        let validator = JSONSchemaValidator(schema) {
            SimilarNameFinder.suggestion(for: $0, among: $1, listedAs: "arguments")
        }
        if arguments.object == nil, arguments.string != nil {
            do { _ = try arguments.objectOrParsed() } catch { return "its value of arguments \(error)" }
        }
        return validator.problem(with: arguments).map { problem in
            let isNamed = problem.contains("is not an argument")
            let undeclared = UndeclaredArguments(in: arguments.object ?? [:], of: schema.object ?? [:])
            return isNamed ? problem : "\(problem)\(undeclared.suggestions)"
        }
    }

    /// Adds a warning to the result of a call with arguments that the tool's schema does not declare.
    func withArgumentWarning(_ result: JSONObject, to request: MCPRequest, at id: EndpointID) async -> JSONObject {
        guard let tool = request.tool, let arguments = request.params["arguments"]?.object, !arguments.members.isEmpty,
            let schema = await schema(of: tool, at: id)?.object,
            let warning = UndeclaredArguments(in: arguments, of: schema).warning(for: tool),
            let content = result["content"]?.array
        else { return result }
        var result = result
        result["content"] = .array(content + [["type": "text", "text": .string(warning)]])
        return result
    }
}

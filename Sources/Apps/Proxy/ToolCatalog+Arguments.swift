import AccessControl
import Model
import SystemIO

/// The check of a tool call's arguments against the tool's schema.
extension ToolCatalog {
    /// Returns the call with arguments that the listed schema of the tool allows. Arguments of another type are converted
    /// if their meaning is unambiguous.
    ///
    /// A tool of an app that was never listed passes: the app validates the arguments itself. A call without a permission
    /// passes too: the sender refuses it with the reason.
    /// - Parameters:
    ///   - request: The call. An offline app may return with another schema within its wait time.
    ///   - id: The app.
    ///   - principal: The caller.
    /// - Returns: The call to send.
    /// - Throws: `AppError.invalidArguments`, `CancellationError`.
    func validated(
        _ request: MCPRequest,
        at id: EndpointID,
        for principal: Principal
    ) async throws -> ValidatedCall {
        guard let tool = request.tool, let endpoint = try? await pool.endpoint(id),
            principal.may(.endpointCall, on: endpoint)
        else { return ValidatedCall(request) }
        do { try await sender.requireTool(request, at: id, for: principal) } catch { return ValidatedCall(request) }
        var call = ValidatedCall(request, by: await schema(of: tool, at: id))
        // A list of the last launch does not decide how arguments are converted.
        guard call.problem != nil || call.isConverted && pool.isListDue(of: id) else { return call }
        // The app may have been rebuilt with another schema since it was listed. If it does not answer in time, the last
        // known schema decides.
        let limit = (request.wait ?? context.timeouts.wait) + context.timeouts.list
        do {
            _ = try await withTimeout(min(limit, request.timeout ?? limit), clock: context.clock) {
                try await freshList(CachedApp.tools, of: id, for: principal, wait: request.wait)
            }
        } catch let error as AppError {
            guard Self.allowsCachedList(error) else { return ValidatedCall(request) }
        } catch is RPCError {
            // The app answers, but has no list any more.
        }
        call = ValidatedCall(request, by: await schema(of: tool, at: id))
        guard let problem = call.problem else { return call }
        let failure = AppError.invalidArguments(tool: tool, problem: problem)
        await sender.recordRefusal(failure, of: request, at: id, for: principal)
        throw failure
    }

    /// Returns the schema of a tool's arguments; nil if the app does not list the tool.
    func schema(of tool: String, at id: EndpointID) async -> JSON? {
        await context.cache.record(of: id).schema(of: tool)
    }
}

/// A tool call, compared with the listed schema of the tool.
struct ValidatedCall: Sendable {
    /// The call to send, with converted arguments.
    private(set) var request: MCPRequest
    /// The reason why the schema does not allow the call; nil if it does.
    private(set) var problem: String?
    private(set) var isConverted = false
    /// The warning about arguments that the schema does not declare.
    private var warning: String?

    /// - Parameters:
    ///   - request: The call.
    ///   - schema: The schema of the tool's arguments; nil if the tool is not listed.
    init(_ request: MCPRequest, by schema: JSON? = nil) {
        self.request = request
        guard let schema, let tool = request.tool else { return }
        let node = JSONSchemaNode(schema)
        var arguments = request.params["arguments"].flatMap { $0.isNull ? nil : $0 } ?? [:]
        problem = Self.problem(with: arguments, node, schema)
        if problem != nil {
            let (value, conversions) = node.converted(arguments)
            if let object = value.object, !conversions.isEmpty, Self.problem(with: value, node, schema) == nil {
                self.request = request.with(arguments: object, conversions: conversions)
                (problem, isConverted, arguments) = (nil, true, value)
            }
        }
        guard let object = arguments.object, !object.members.isEmpty else { return }
        warning = UndeclaredArguments(in: object, of: schema.object ?? [:]).warning(for: tool)
    }

    private static func problem(with arguments: JSON, _ node: JSONSchemaNode, _ schema: JSON) -> String? {
        if arguments.object == nil, arguments.string != nil {
            do { _ = try arguments.objectOrParsed() } catch { return "its value of arguments \(error)" }
        }
        let validator = JSONSchemaValidator(node) {
            SimilarNameFinder.suggestion(for: $0, among: $1, listedAs: "arguments")
        }
        return validator.problem(with: arguments).map { problem in
            let isNamed = problem.contains("is not an argument")
            let undeclared = UndeclaredArguments(in: arguments.object ?? [:], of: schema.object ?? [:])
            return isNamed ? problem : "\(problem)\(undeclared.suggestions)"
        }
    }

    /// Adds the warning to the result of the call.
    func withWarning(_ result: JSONObject) -> JSONObject {
        guard let warning, let content = result["content"]?.array else { return result }
        return result.with("content", .array(content + [["type": "text", "text": .string(warning)]]))
    }
}

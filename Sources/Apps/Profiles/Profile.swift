package import Model

/// A description of a plain HTTP debug server, which makes it an endpoint kind with MCP tools.
///
/// A profile names paths of its own endpoint only. It has no means to name another host or another endpoint's secret.
package struct Profile: Hashable, Sendable {
    /// The maximum size of a request's body in bytes. DebugBridge accepts as much.
    static let bodyLimit = 1_048_576
    /// The maximum size of a request's path and query in bytes.
    static let targetLimit = 4_096

    /// The endpoint kind, for example `app-debug`.
    package let name: String
    package let title: String
    /// The ports of phones on which the server usually listens.
    package let ports: [UInt16]
    /// The abilities of the server in words, for example `screenshot`.
    package let capabilities: [String]
    package let limits: [ProfileLimitation]
    /// The explanation of a timeout, for example that the app may be stopped at a breakpoint.
    package let timeoutHint: String?
    package let authentication: AuthenticationMethod
    package let tools: [ProfileTool]
    /// The list of functions that the server itself describes; nil if it describes none.
    package let functions: FunctionListTemplate?
    let recognition: [RecognitionStep]
    let identity: IdentitySource
    let session: ProfileSessionSpec?
    /// The place of the message in the JSON of an error response.
    let errorPointer: JSONPointer?
    /// The paths without placeholders. An argument in a path must not lead to one of them.
    let literalPaths: Set<String>

    package var kind: EndpointKind { EndpointKind(name) }

    /// The abilities and limits in words.
    package var abilities: EndpointAbilities {
        EndpointAbilities(capabilities: capabilities, limits: limits.map(\.text))
    }
}

/// Something that a kind of server cannot do.
package struct ProfileLimitation: Hashable, Sendable {
    /// The limit in words, for example `no coordinates`.
    package let text: String
    /// The names of tools that agents expect and that do not exist.
    package let missingTools: [String]
    /// The tool that comes nearest.
    package let alternative: String?
}

/// The credential that a kind of server requires.
package enum AuthenticationMethod: Hashable, Sendable {
    case none
    /// The endpoint's secret is a bearer token.
    case bearer
    /// The endpoint's secret is a token for one use, which is exchanged for a new one. The body has `{new_token}`.
    case exchange(RequestTemplate)

    package var requiresSecret: Bool { self != .none }
}

extension Profile {
    /// Returns all tools for `tools/list`. A function of the server with the name of a profile's tool is omitted.
    package func allTools(with functions: [ProfileTool]) -> [ProfileTool] {
        tools + functions.filter { function in !tools.contains { $0.name == function.name } }
    }

    /// Returns the tool. `functions` are the tools of the server's own list, if the profile has one.
    ///
    /// - Throws: `ProfileError.unknownTool` with the reason and the nearest tool that works.
    package func tool(named name: String, functions: [ProfileTool] = []) throws(ProfileError) -> ProfileTool {
        let tools = allTools(with: functions)
        if let tool = tools.first(where: { $0.name == name }) { return tool }
        guard let limit = limits.first(where: { $0.missingTools.contains(name) }) else {
            let suggestion = SimilarNameFinder.suggestion(for: name, among: tools.map(\.name), listedAs: "tools")
            throw .unknownTool(name, reason: "\(title) does not have it\(suggestion)")
        }
        let alternative = limit.alternative.map { "; use \($0)" } ?? ""
        throw .unknownTool(name, reason: "\(limit.text)\(alternative)")
    }

    /// Builds the request of a call.
    ///
    /// - Parameters:
    ///   - tool: A tool of this profile.
    ///   - arguments: The arguments of the call, which are checked against the tool's schema.
    ///   - authentication: The prepared authentication, which adds the secret and the session.
    /// - Returns: The request, which can be sent as it is.
    /// - Throws: `ProfileError.invalidArgument`.
    package func request(
        for tool: ProfileTool,
        arguments: JSONObject,
        with authentication: ProfileAuthentication
    ) throws(ProfileError) -> ProfileRequest {
        do throws(ArgumentProblem) {
            var values = try tool.values(arguments)
            values["session"] = authentication.pathSession
            let path = try tool.template.path.path(values)
            if !tool.template.path.requiredPlaceholders.isEmpty, literalPaths.contains(path) {
                throw ArgumentProblem("the path \(path) belongs to another request of this server")
            }
            let request = try tool.template.request(values, timeout: tool.timeout)
            return authentication.authorized(request, inSession: tool.needsSession)
        } catch {
            throw .invalidArgument(tool: tool.name, reason: error.reason)
        }
    }
}

/// The reason why a call of a profile's tool is rejected. An invalid profile file is a `TOMLError`.
package enum ProfileError: Error, Hashable, Sendable {
    /// The profile has no such tool. `reason` says what works instead.
    case unknownTool(String, reason: String)
    /// An argument of a call is missing or invalid.
    case invalidArgument(tool: String, reason: String)
    /// The server answered with data that the profile does not describe. `reason` continues "it answers with".
    case invalidResponse(reason: String)
}

/// The message without control characters: names in a call must not control the terminal.
extension ProfileError: CustomStringConvertible {
    package var description: String { SanitizedText(message, limit: .max).text }

    private var message: String {
        switch self {
        case .unknownTool(let name, let reason): "there is no tool \"\(name)\": \(reason)"
        case .invalidArgument(let tool, let reason): "\(tool) was not called: \(reason)"
        case .invalidResponse(let reason): "it answers with \(reason)"
        }
    }
}

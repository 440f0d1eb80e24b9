import Model

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

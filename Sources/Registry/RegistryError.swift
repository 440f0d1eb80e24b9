package import Model

/// Why the registry could not do what was asked of it.
package enum RegistryError: Error, Equatable {
    case noSuchEndpoint(String)
    /// Forgetting an endpoint that a source still sees would only list it again.
    case stillSeen(EndpointID)
    case nameTaken(String)
}

extension RegistryError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .noSuchEndpoint(let id): "no endpoint is called \"\(SanitizedText(id))\"; `patchbay list` shows them all"
        case .stillSeen(let id):
            "\(id) is still there and would be listed again; only an offline endpoint can be forgotten"
        case .nameTaken(let name):
            "a static endpoint called \"\(SanitizedText(name))\" stands already; choose another name"
        }
    }
}

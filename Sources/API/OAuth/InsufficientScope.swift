import AccessControl
import Apps
import Model

/// The refusal of a call that a client of OAuth may make after a step-up (RFC 6750, section 3.1; MCP, step-up).
struct InsufficientScope: Error {
    let grant: Grant
    let missing: Scope

    /// The scopes to ask for. A client that asks for these keeps what it has.
    var scopes: [String] { grant.permissions.scopes.union([missing]).sorted().map(\.rawValue) }

    var problem: Problem {
        Problem(
            .forbidden,
            "grant \(grant.id) does not allow \(missing.rawValue)",
            hint: "let the client ask for it again: an owner decides"
        )
    }

    /// Throws if a message calls a tool without the scope that every call of it needs. Only a token of OAuth can get more.
    ///
    /// - Parameters:
    ///   - message: The body of the request. What is no call of a tool is for the handler.
    ///   - handler: Knows the scopes of its tools.
    ///   - grant: The grant of the client.
    /// - Throws: `InsufficientScope`.
    static func check(_ message: [UInt8], to handler: any MCPRequestHandler, of grant: Grant?) throws {
        guard let grant, grant.resource != nil, let json = try? JSON(parsing: message),
            json["method"]?.string == "tools/call", let name = json["params"]?["name"]?.string
        else { return }
        let scope = handler.scope(ofTool: name)
        guard grant.permissions.exclusion(of: scope) == nil, !grant.permissions.allow(scope) else { return }
        throw InsufficientScope(grant: grant, missing: scope)
    }
}

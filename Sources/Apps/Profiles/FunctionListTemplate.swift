import Model
import TOML

/// The functions that a server lists itself: one request lists them, and another calls one.
package struct FunctionListTemplate: Hashable, Sendable {
    /// The maximum number of functions. More would fill an agent's context.
    private static let limit = 200

    private let list: RequestTemplate
    private let call: RequestTemplate
    /// The place of the list in the response.
    private let pointer: JSONPointer
    /// The places in each element of the list.
    private let name: JSONPointer
    private let description: JSONPointer
    private let schema: JSONPointer
    private let timeout: Duration

    var templates: [RequestTemplate] { [list, call] }

    /// Parses the table `[functions]`.
    init(_ table: TOMLTable) throws(TOMLError) {
        try table.allow(["list", "call", "pointer", "name", "description", "schema", "timeout"])
        list = try table.requiredValue("list") { list throws(TOMLError) in
            try RequestTemplate(list, placeholders: [])
        }
        call = try table.requiredValue("call") { call throws(TOMLError) in
            let template = try RequestTemplate(call, placeholders: ["function", "arguments"])
            guard template.placeholders.contains("function") else {
                throw call.error("body", "must have the placeholder {function}")
            }
            return template
        }
        pointer = try table.pointer("pointer") ?? .root
        name = try table.pointer("name") ?? JSONPointer.root.appending("name")
        description = try table.pointer("description") ?? JSONPointer.root.appending("description")
        schema = try table.pointer("schema") ?? JSONPointer.root.appending("parameters")
        timeout = .seconds(
            try table.duration("timeout", in: ProfileTool.timeouts)?.seconds ?? ProfileTool.defaultTimeout
        )
    }

    /// Returns the request for the list.
    package func request(with authentication: ProfileAuthentication) -> ProfileRequest? {
        // The request has no placeholders, so it can always be built.
        (try? list.request([:], timeout: timeout)).map { authentication.authorized($0, inSession: false) }
    }

    /// Returns the tools in the response. Elements without a valid name are ignored.
    ///
    /// - Throws: `ProfileError.invalidResponse` if the response has no list.
    package func tools(in response: AppResponse) throws(ProfileError) -> [ProfileTool] {
        guard response.isSuccess, let json = response.json, let elements = pointer.value(in: json)?.array else {
            throw .invalidResponse(reason: "status \(response.status) and no list of functions at \"\(pointer)\"")
        }
        var names: Set<String> = []
        return elements.prefix(Self.limit).compactMap { element in
            guard let name = name.value(in: element)?.string, ProfileTool.isName(name), names.insert(name).inserted
            else { return nil }
            let schema = schema.value(in: element)
            return ProfileTool(
                name: name,
                title: nil,
                description: SanitizedText(description.value(in: element)?.string ?? "", limit: 1_000).text,
                timeout: timeout,
                isReadOnly: false,
                isIdempotent: false,
                template: call,
                arguments: .forwarded(schema: schema?["type"] == "object" ? schema ?? [:] : ["type": "object"]),
                result: .json(JSONSelection()),
                isRPC: false,
                needsSession: false
            )
        }
    }
}

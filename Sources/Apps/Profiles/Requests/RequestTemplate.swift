import Model
import TOML

/// A request of a profile: method, path and JSON body, with placeholders for arguments.
package struct RequestTemplate: Hashable, Sendable {
    enum Method: String, CaseIterable {
        case get = "GET"
        case post = "POST"
        case put = "PUT"
        case delete = "DELETE"
    }

    static let keys = ["method", "path", "body"]

    let method: Method
    let path: PathTemplate
    /// The body. A text that consists of a placeholder stands for the argument's value.
    let body: JSON?

    init(method: Method, path: PathTemplate, body: JSON?) {
        self.method = method
        self.path = path
        self.body = body
    }

    /// Parses the keys `method`, `path` and `body` of a table.
    init(_ table: TOMLTable) throws(TOMLError) {
        let names = Method.allCases.map(\.rawValue).joined(separator: ", ")
        method = try table.optional("method", "one of \(names)") { $0.string.flatMap(Method.init) } ?? .get
        path = try Self.path(table)
        body = try Self.json(table, "body")
        if body != nil, method == .get { throw table.error("body", "is not possible with the method GET") }
    }

    static func path(_ table: TOMLTable) throws(TOMLError) -> PathTemplate {
        try table.required("path", "a path on the server itself, such as \"/state/{key}\"") {
            $0.string.flatMap(PathTemplate.init)
        }
    }

    /// Returns the JSON text of a key.
    static func json(_ table: TOMLTable, _ key: String) throws(TOMLError) -> JSON? {
        guard let text = try table.text(key) else { return nil }
        do { return try JSON(parsing: text) } catch {
            throw table.error(key, "must be JSON; it is invalid at byte \(error.offset)")
        }
    }

    var placeholders: [String] { path.placeholders + (body.map(Self.placeholders) ?? []) }

    /// Fills the placeholders. An absent value omits its member of the body, or its item of the query.
    func request(_ values: [String: JSON], timeout: Duration) throws(ArgumentProblem) -> ProfileRequest {
        let body = body.flatMap { Self.filled($0, values) }?.bytes
        if let body, body.count > Profile.bodyLimit {
            throw ArgumentProblem("the body would have \(body.count) bytes; the limit is \(Profile.bodyLimit)")
        }
        let target = try path.target(values)
        guard target.utf8.count <= Profile.targetLimit else {
            throw ArgumentProblem(
                "the path would have \(target.utf8.count) bytes; the limit is \(Profile.targetLimit)"
            )
        }
        return ProfileRequest(method: method.rawValue, target: target, body: body, timeout: timeout)
    }

    private static func filled(_ template: JSON, _ values: [String: JSON]) -> JSON? {
        switch template {
        case .string(let text):
            guard let name = Placeholder.name(in: text) else { return template }
            return values[name]
        case .array(let elements): return .array(elements.compactMap { filled($0, values) })
        case .object(let object):
            return .object(object.compactMapValues { filled($0, values) })
        case .null, .bool, .number: return template
        }
    }

    private static func placeholders(_ template: JSON) -> [String] {
        switch template {
        case .string(let text): Placeholder.name(in: text).map { [$0] } ?? []
        case .array(let elements): elements.flatMap(placeholders)
        case .object(let object): object.members.flatMap { placeholders($0.value) }
        case .null, .bool, .number: []
        }
    }
}

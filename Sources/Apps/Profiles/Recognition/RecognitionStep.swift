import Model
import TOML

/// One request of the recognition, and the conditions on its response.
struct RecognitionStep: Hashable {
    enum Status: Hashable {
        case equal(Int)
        /// The server must not answer with this status; it may also not answer at all.
        case unequal(Int)
    }

    let template: RequestTemplate
    let status: Status
    /// The media type of the response.
    let contentType: String?
    let schema: JSONSchema?

    /// Returns the first unmet condition; it continues the sentence "it answers with".
    func mismatch(_ response: AppResponse) -> String? {
        switch status {
        case .equal(let status) where response.status != status:
            return "status \(response.status) instead of \(status)"
        case .unequal(response.status): return "status \(response.status), as to other requests"
        case .equal, .unequal: break
        }
        if let contentType, response.mediaType != contentType {
            return "\(response.mediaType ?? "no content type") instead of \(contentType)"
        }
        guard let schema else { return nil }
        guard let json = response.json else { return "something that is not JSON" }
        return schema.problem(with: json).map { "other JSON: \($0)" }
    }
}

extension RecognitionStep {
    /// Parses a table of `[[recognition]]`.
    init(_ table: TOMLTable) throws(TOMLError) {
        try table.allow(RequestTemplate.keys + ["status", "not_status", "content_type", "json"])
        template = try RequestTemplate(table)
        if let placeholder = template.placeholders.first {
            throw table.error("path", "must not have the placeholder {\(placeholder)}: no argument exists yet")
        }
        let status = try table.number("status", in: 100...599)
        let excluded = try table.number("not_status", in: 100...599)
        if status != nil, excluded != nil {
            throw table.error("not_status", "is not possible together with status; remove one of them")
        }
        self.status = excluded.map { .unequal($0) } ?? .equal(status ?? 200)
        contentType = try table.text("content_type").map { $0.lowercased() }
        schema = try table.value("json", JSONSchema.init(_:))
    }
}

/// The places of an app's identity in the responses of the recognition.
struct IdentitySource: Hashable {
    struct Place: Hashable {
        let path: String
        let pointer: JSONPointer

        init(_ table: TOMLTable, paths: [String]) throws(TOMLError) {
            try table.allow(["path", "pointer"])
            path = try table.requiredText("path")
            pointer = try table.pointer("pointer") ?? .root
            guard paths.contains(path) else {
                throw table.error("path", "must be a path of [[recognition]]: \(paths.joined(separator: ", "))")
            }
        }
    }

    var app: Place?
    var version: Place?
    var launchID: Place?

    init() {}

    /// Parses the table `[identity]`.
    init(_ table: TOMLTable, paths: [String]) throws(TOMLError) {
        try table.allow(["app", "version", "launch"])
        func place(_ key: String) throws(TOMLError) -> Place? {
            try table.value(key) { place throws(TOMLError) in try Place(place, paths: paths) }
        }
        app = try place("app")
        version = try place("version")
        launchID = try place("launch")
    }
}

import Model
import TOML

/// The session that a server requires for some tools: how it is acquired, kept alive and released.
struct ProfileSessionSpec: Hashable, Sendable {
    /// A request without arguments, and the place of the session's ID in its response.
    struct Source: Hashable {
        let template: RequestTemplate
        let pointer: JSONPointer
    }

    /// The responses that report a session which the server no longer knows.
    struct Loss: Hashable {
        let status: Int
        let pointer: JSONPointer
        let values: [String]

        func includes(_ response: AppResponse) -> Bool {
            response.status == status && response.text(at: pointer).map(values.contains) ?? false
        }
    }

    /// The header with the session's ID; nil if paths have it as `{session}`.
    let header: String?
    /// The request that tells of a session which another client has begun. That session is used and not released.
    let existing: Source?
    let acquire: Source
    let heartbeat: RequestTemplate?
    let release: RequestTemplate?
    /// The time after which the server drops an unused session.
    let lifetime: Duration
    /// The status that says that another client holds the session.
    let busyStatus: Int?
    let loss: Loss?
}

extension ProfileSessionSpec {
    private static let maxLifetime = 86_400

    /// Parses the table `[session]`.
    init(_ table: TOMLTable) throws(TOMLError) {
        try table.allow([
            "header", "existing", "acquire", "heartbeat", "release", "lifetime", "busy_status", "lost",
        ])
        header = try table.optional("header", "the name of a header that begins with \"X-\"") { json in
            // Any other header could change the framing, the host or the credential.
            json.string.flatMap { $0.wholeMatch(of: #/[Xx]-[A-Za-z0-9-]{1,60}/#) == nil ? nil : $0 }
        }
        acquire = try table.requiredValue("acquire", Source.init(_:))
        existing = try table.value("existing", Source.init(_:))
        func request(_ table: TOMLTable) throws(TOMLError) -> RequestTemplate {
            try RequestTemplate(table, placeholders: ["session"])
        }
        heartbeat = try table.value("heartbeat", request)
        release = try table.value("release", request)
        guard let seconds = try table.number("lifetime", in: 1...Self.maxLifetime) else {
            throw table.error("lifetime", "is missing; it must be a number of seconds")
        }
        lifetime = .seconds(seconds)
        busyStatus = try table.number("busy_status", in: 400...599)
        loss = try table.value("lost", Loss.init(_:))
    }

    /// All requests of the session.
    var templates: [RequestTemplate] {
        [acquire.template] + [existing?.template, heartbeat, release].compactMap { $0 }
    }
}

extension ProfileSessionSpec.Source {
    init(_ table: TOMLTable) throws(TOMLError) {
        template = try RequestTemplate(table, placeholders: [], otherKeys: ["pointer"])
        pointer = try table.pointer("pointer") ?? .root
    }
}

extension ProfileSessionSpec.Loss {
    init(_ table: TOMLTable) throws(TOMLError) {
        try table.allow(["status", "pointer", "values"])
        guard let status = try table.number("status", in: 400...599) else {
            throw table.error("status", "is missing; it must be a number from 400 to 599")
        }
        self.status = status
        pointer = try table.pointer("pointer") ?? .root
        values = try table.list("values", of: .text)
    }
}

extension RequestTemplate {
    /// Parses a request of Patchbay's own, with these placeholders only.
    init(_ table: TOMLTable, placeholders: [String], otherKeys: [String] = []) throws(TOMLError) {
        try table.allow(Self.keys + otherKeys)
        try self.init(table)
        try check(table, placeholders, "placeholders")
    }

    /// Checks that the request has these placeholders only.
    func check(
        _ table: TOMLTable,
        _ known: [String],
        _ kind: String,
        because reason: String = ""
    ) throws(TOMLError) {
        for name in placeholders where !known.contains(name) {
            let suggestion = SimilarNameFinder.suggestion(for: name, among: known, listedAs: kind)
            let key = path.placeholders.contains(name) ? "path" : "body"
            throw table.error(key, "has the placeholder {\(name)}\(reason)\(suggestion)")
        }
    }
}

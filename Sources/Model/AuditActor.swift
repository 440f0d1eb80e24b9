/// Who asks for something: what the audit log says after "who".
package enum AuditActor: Hashable, Sendable {
    /// A process on this machine, as SO_PEERCRED and its pid descriptor told.
    case process(uid: UInt32, pid: Int32, executable: SanitizedText)
    /// Whoever holds this grant.
    case grant(String)
    /// Somebody who has shown nothing yet: a redeemer.
    case stranger
    /// Patchbay itself: expiry, repair at start.
    case broker
}

/// In JSON `{"uid": …, "pid": …, "exe": …}`, `{"grant": …}`, or the word.
extension AuditActor: Codable {
    private enum Keys: String, CodingKey { case uid, pid, executable = "exe", grant }

    package init(from decoder: any Decoder) throws {
        if let word = try? decoder.singleValueContainer().decode(String.self) {
            self = word == "broker" ? .broker : .stranger
            return
        }
        let container = try decoder.container(keyedBy: Keys.self)
        if let id = try container.decodeIfPresent(String.self, forKey: .grant) {
            self = .grant(id)
        } else {
            self = .process(
                uid: try container.decode(UInt32.self, forKey: .uid),
                pid: try container.decode(Int32.self, forKey: .pid),
                executable: try container.decode(SanitizedText.self, forKey: .executable)
            )
        }
    }

    package func encode(to encoder: any Encoder) throws {
        switch self {
        case .process(let uid, let pid, let executable):
            var container = encoder.container(keyedBy: Keys.self)
            try container.encode(uid, forKey: .uid)
            try container.encode(pid, forKey: .pid)
            try container.encode(executable, forKey: .executable)
        case .grant(let id):
            var container = encoder.container(keyedBy: Keys.self)
            try container.encode(id, forKey: .grant)
        case .stranger, .broker:
            var container = encoder.singleValueContainer()
            try container.encode(self == .broker ? "broker" : "stranger")
        }
    }
}

/// Lines of the audit log as they are written there, the oldest first: the answer to `GET /v1/audit`.
package struct AuditPage: Hashable, Sendable, Codable {
    package let schema: Int
    /// Each is one JSON document, kept as text: the next line holds the hash of these very bytes.
    package let lines: [String]

    package init(lines: [String]) {
        schema = 1
        self.lines = lines
    }
}

/// Whether the audit log is whole: the answer to `GET /v1/audit/verify`.
package struct AuditVerification: Hashable, Sendable, Codable {
    /// How many lines there are.
    package let lines: Int
    /// The first line, from 1, that is not what was written; nil when all are.
    package let brokenLine: Int?
    /// How that shows.
    package let what: String?

    package init(lines: Int, brokenLine: Int? = nil, what: String? = nil) {
        self.lines = lines
        self.brokenLine = brokenLine
        self.what = what
    }
}

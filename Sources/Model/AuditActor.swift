/// The author of an action in the audit log.
package enum AuditActor: Hashable, Sendable {
    /// A process on this machine, identified by SO_PEERCRED and its pid descriptor.
    case process(uid: UInt32, pid: Int32, executable: SanitizedText)
    /// The holder of the grant with this ID.
    case grant(String)
    /// An owner in a browser, with this grant as the session.
    case dashboard(uid: UInt32, grant: String)
    /// A client of the broker of another host in the team.
    case member(host: HostName, client: SanitizedText)
    /// A client without a grant, for example one that redeems an invite.
    case anonymous
    /// Patchbay itself, for example at expiration or at a repair during startup.
    case broker
}

/// Encodes as `{"uid": …, "pid": …, "exe": …}`, `{"grant": …}`, `{"uid": …, "grant": …}`, `{"host": …, "client": …}`, `"broker"` or `"anonymous"`.
extension AuditActor: Codable {
    private enum Keys: String, CodingKey { case uid, pid, executable = "exe", grant, host, client }

    package init(from decoder: any Decoder) throws {
        if let word = try? decoder.singleValueContainer().decode(String.self) {
            self = word == "broker" ? .broker : .anonymous
            return
        }
        let container = try decoder.container(keyedBy: Keys.self)
        if let id = try container.decodeIfPresent(String.self, forKey: .grant) {
            let user = try container.decodeIfPresent(UInt32.self, forKey: .uid)
            self = user.map { .dashboard(uid: $0, grant: id) } ?? .grant(id)
        } else if let host = try container.decodeIfPresent(HostName.self, forKey: .host) {
            self = .member(host: host, client: try container.decode(SanitizedText.self, forKey: .client))
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
        case .dashboard(let uid, let id):
            var container = encoder.container(keyedBy: Keys.self)
            try container.encode(uid, forKey: .uid)
            try container.encode(id, forKey: .grant)
        case .member(let host, let client):
            var container = encoder.container(keyedBy: Keys.self)
            try container.encode(host, forKey: .host)
            try container.encode(client, forKey: .client)
        case .anonymous, .broker:
            var container = encoder.singleValueContainer()
            try container.encode(self == .broker ? "broker" : "anonymous")
        }
    }
}

/// Entries of the audit log in file order, oldest first: the response to `GET /v1/audit`.
package struct AuditPage: Hashable, Sendable, Codable {
    package let schema: Int
    /// The entries as JSON text. The text must not change, because the next entry holds the hash of its bytes.
    package let lines: [String]

    package init(lines: [String]) {
        schema = 1
        self.lines = lines
    }
}

/// The result of checking the hash chain of the audit log: the response to `GET /v1/audit/verify`.
package struct AuditVerification: Hashable, Sendable, Codable {
    /// The number of entries.
    package let entries: Int
    /// The number of the first invalid entry, counted from 1. Nil if all entries are valid.
    package let firstInvalidEntry: Int?
    /// The reason why that entry is invalid.
    package let reason: String?

    package init(entries: Int, firstInvalidEntry: Int? = nil, reason: String? = nil) {
        self.entries = entries
        self.firstInvalidEntry = firstInvalidEntry
        self.reason = reason
    }
}

import AccessControl
import FoundationEssentials
import Glibc
import Logging
import Model
import SystemIO

/// The open invites for hosts: the file `invites.json` in the team's folder.
///
/// Each is valid for a time, for a number of hosts, and for each host once. Five attempts with a wrong secret end it. The
/// file has hashes only.
///
/// `InviteService` is not used, because its invites are exchanged for grants, with permissions and expiry that a host does
/// not have. A host gets a certificate.
actor TeamInvites {
    /// An invite.
    struct Record: Codable, Hashable {
        let id: String
        let digest: TokenDigest
        let createdAt: Date
        let expiresAt: Date
        /// The number of hosts that may join with it.
        let hosts: Int
        /// The names that these hosts may have, where `*` is any text. Empty for all names.
        let names: [String]
        /// The hosts that have used it.
        var admitted: [HostName] = []
        var failedAttempts = 0

        var isSpent: Bool { admitted.count >= hosts }

        /// Returns whether a host may join with it, and has not yet.
        func allows(_ host: HostName) -> Bool {
            let isNamed = names.isEmpty || names.contains { fnmatch($0, host.text, 0) == 0 }
            return !isSpent && isNamed && !admitted.contains(host)
        }
    }

    /// The number of wrong secrets after which an invite ends.
    static let wrongLimit = 5
    /// The maximum number of saved invites. A new one ends the oldest one.
    static let limit = 64

    private let file: StateFile<[Record]>
    private let now: @Sendable () -> Date
    private let logger: Logger
    /// Nil until the file was read.
    private var records: [Record]?

    init(in folder: TeamFolder, now: @escaping @Sendable () -> Date = { Date() }, logger: Logger) {
        file = StateFile("invites", in: folder.path, logger: logger)
        self.now = now
        self.logger = logger
    }

    /// The invites with which further hosts may join, the oldest one first.
    var open: [OpenTeamInvite] {
        get async throws(StateError) {
            try await validRecords().filter { !$0.isSpent }.map {
                OpenTeamInvite(
                    id: $0.id,
                    createdAt: $0.createdAt,
                    expiresAt: $0.expiresAt,
                    hosts: $0.hosts,
                    names: $0.names,
                    admitted: $0.admitted
                )
            }
        }
    }

    /// Creates an invite. Returns after its hash is on disk.
    ///
    /// - Parameter spec: The hosts, names and time of the invite, which the caller has checked.
    /// - Returns: The invite, and its end.
    /// - Throws: `StateError`.
    func create(_ spec: TeamInviteSpec = TeamInviteSpec()) async throws(StateError) -> (token: Token, expiresAt: Date) {
        var valid = try await validRecords()
        if valid.count >= Self.limit { valid.removeAll(where: \.isSpent) }
        var token = Token(random: .invite)
        while valid.contains(where: { $0.id == token.id }) { token = Token(random: .invite) }
        let created = now()
        let record = Record(
            id: token.id,
            digest: TokenDigest(token),
            createdAt: created,
            expiresAt: created.addingTimeInterval(TimeInterval(spec.seconds ?? TeamInviteSpec.standardSeconds)),
            hosts: spec.hosts ?? 1,
            names: spec.names ?? []
        )
        try await save(valid.suffix(Self.limit - 1) + [record])
        return (token, record.expiresAt)
    }

    /// Spends the place of a host in an invite. Returns after that is on disk, so that it also holds after a crash.
    ///
    /// - Returns: The record with the host, for `restore`; nil for every reason why the invite is not valid for the host.
    /// - Throws: `StateError`.
    func spend(_ token: Token, by host: HostName) async throws(StateError) -> Record? {
        var valid = try await validRecords()
        guard let index = valid.firstIndex(where: { $0.id == token.id }) else { return nil }
        guard valid[index].digest.matches(token) else {
            valid[index].failedAttempts += 1
            let attempts = valid[index].failedAttempts
            logger.warning(
                "an invite of the team was tried with a wrong secret",
                metadata: ["invite": "\(token.id)", "attempt": "\(attempts) of \(Self.wrongLimit)"]
            )
            if attempts >= Self.wrongLimit { valid.remove(at: index) }
            try await save(valid)
            return nil
        }
        guard valid[index].allows(host) else { return nil }
        valid[index].admitted.append(host)
        let record = valid[index]
        try await save(valid)
        return record
    }

    /// Gives the place of a host back, because it was not admitted.
    ///
    /// - Throws: `StateError`.
    func restore(_ host: HostName, in record: Record) async throws(StateError) {
        var valid = try await validRecords()
        guard let index = valid.firstIndex(where: { $0.id == record.id }) else { return }
        valid[index].admitted.removeAll { $0 == host }
        try await save(valid)
    }

    /// Ends an invite. Hosts that joined with it stay.
    ///
    /// - Returns: False if there is no such open invite.
    /// - Throws: `StateError`.
    func revoke(_ id: String) async throws(StateError) -> Bool {
        let valid = try await validRecords()
        guard valid.contains(where: { $0.id == id && !$0.isSpent }) else { return false }
        try await save(valid.filter { $0.id != id })
        return true
    }

    /// Returns the invites that have not ended. A clock that was set back ends them, too.
    private func validRecords() async throws(StateError) -> [Record] {
        if records == nil {
            let saved = try await file.read() ?? []
            // Another call may have read the file meanwhile.
            if records == nil { records = saved }
        }
        let now = now()
        return (records ?? []).filter { $0.createdAt.addingTimeInterval(-60) <= now && now < $0.expiresAt }
    }

    /// Takes effect before the file is written, so that no second call spends the same place.
    private func save(_ valid: [Record]) async throws(StateError) {
        records = valid
        try await file.write(valid)
    }
}

extension TeamInvites.Record {
    /// Decodes a record, also one of a version with invites for one host.
    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        id = try container.decode(String.self, forKey: .id)
        digest = try container.decode(TokenDigest.self, forKey: .digest)
        createdAt = try container.decode(Date.self, forKey: .createdAt)
        expiresAt = try container.decode(Date.self, forKey: .expiresAt)
        hosts = try container.decodeIfPresent(Int.self, forKey: .hosts) ?? 1
        names = try container.decodeIfPresent([String].self, forKey: .names) ?? []
        admitted = try container.decodeIfPresent([HostName].self, forKey: .admitted) ?? []
        failedAttempts = try container.decodeIfPresent(Int.self, forKey: .failedAttempts) ?? 0
    }
}

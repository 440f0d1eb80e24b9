import AccessControl
import FoundationEssentials
import Logging
import Model
import SystemIO

/// The open invites for hosts: the file `invites.json` in the team's folder.
///
/// Each is valid for 10 minutes and for one host. Five attempts with a wrong secret end it. The file has hashes only.
///
/// `InviteService` is not used, because its invites are exchanged for grants, with permissions and expiry that a host does
/// not have. A host gets a certificate.
actor TeamInvites {
    /// An open invite.
    struct Record: Codable, Hashable {
        let id: String
        let digest: TokenDigest
        let createdAt: Date
        let expiresAt: Date
        var failedAttempts = 0
    }

    /// The lifetime of an invite in seconds.
    static let lifetime: TimeInterval = 600
    /// The number of wrong secrets after which an invite ends.
    static let wrongLimit = 5
    /// The maximum number of open invites. A new one ends the oldest one.
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

    /// Creates an invite. Returns after its hash is on disk.
    ///
    /// - Throws: `StateError`.
    func create() async throws(StateError) -> (token: Token, expiresAt: Date) {
        var open = try await openRecords()
        var token = Token(random: .invite)
        while open.contains(where: { $0.id == token.id }) { token = Token(random: .invite) }
        let created = now()
        let record = Record(
            id: token.id,
            digest: TokenDigest(token),
            createdAt: created,
            expiresAt: created.addingTimeInterval(Self.lifetime)
        )
        open = open.suffix(Self.limit - 1) + [record]
        try await save(open)
        return (token, record.expiresAt)
    }

    /// Spends an invite. Returns after that is on disk, so that it also holds after a crash.
    ///
    /// - Returns: The record, for `restore`; nil for every reason why the invite is not valid.
    /// - Throws: `StateError`.
    func spend(_ token: Token) async throws(StateError) -> Record? {
        var open = try await openRecords()
        guard let index = open.firstIndex(where: { $0.id == token.id }) else { return nil }
        let record = open[index]
        guard record.digest.matches(token) else {
            open[index].failedAttempts += 1
            let attempts = open[index].failedAttempts
            logger.warning(
                "an invite of the team was tried with a wrong secret",
                metadata: ["invite": "\(token.id)", "attempt": "\(attempts) of \(Self.wrongLimit)"]
            )
            if attempts >= Self.wrongLimit { open.remove(at: index) }
            try await save(open)
            return nil
        }
        open.remove(at: index)
        try await save(open)
        return record
    }

    /// Makes an invite valid again, because its host was not admitted.
    ///
    /// - Throws: `StateError`.
    func restore(_ record: Record) async throws(StateError) {
        let open = try await openRecords()
        guard !open.contains(where: { $0.id == record.id }) else { return }
        try await save(open + [record])
    }

    /// Returns the invites that have not ended. A clock that was set back ends them, too.
    private func openRecords() async throws(StateError) -> [Record] {
        if records == nil {
            let saved = try await file.read() ?? []
            // Another call may have read the file meanwhile.
            if records == nil { records = saved }
        }
        let now = now()
        return (records ?? []).filter { $0.createdAt.addingTimeInterval(-60) <= now && now < $0.expiresAt }
    }

    /// Takes effect before the file is written, so that no second call spends the same invite.
    private func save(_ open: [Record]) async throws(StateError) {
        records = open
        try await file.write(open)
    }
}

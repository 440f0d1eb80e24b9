import CSQLite
import Crypto
import FoundationEssentials
import Glibc
import Model
import SystemIO

/// `access.sqlite`, the persistent access state.
///
/// Each row is a JSON record with a MAC (`DerivedKeys`), beside the few columns that a compare-and-set needs. Blocks on
/// file I/O; used only on the thread of `AccessStore`. Holds an exclusive lock on the file.
struct AccessDatabase {
    static let name = "access.sqlite"
    static let companions = ["-wal", "-shm", "-journal"]

    /// The version of the tables, SQLite's `user_version`. Version 0 has no denials.
    private static let version = 1
    private static let row = "body BLOB NOT NULL, mac BLOB NOT NULL"

    /// The spent invite's row had changed; nothing was written.
    struct Conflict: Error {}

    let path: String
    private let file: SQLite
    private let keys: DerivedKeys

    /// Opens the database, and creates a missing one.
    ///
    /// - Throws: `AccessError`, or a `SQLiteError` that `isDamage` classifies.
    init(in folder: String, keys: DerivedKeys) throws {
        path = "\(folder)/\(Self.name)"
        self.keys = keys
        for suffix in [""] + Self.companions { try PrivateFile.check(file: path + suffix) }
        if try !PrivateFile.check(file: path) {
            // SQLite creates its other files with the mode of this one.
            try PrivateFile.create(path)
            try PrivateFile.sync(folderOf: path)
        }
        do {
            file = try SQLite(opening: path)
            // Exclusive locking rejects a second broker, and needs no shared memory file.
            try file.execute(
                """
                PRAGMA locking_mode = EXCLUSIVE;
                PRAGMA journal_mode = WAL;
                PRAGMA synchronous = FULL;
                PRAGMA secure_delete = ON;
                PRAGMA cell_size_check = ON;
                PRAGMA wal_autocheckpoint = 256;
                """
            )
            try makeTables()
            try migrate()
            let findings = try file.run("PRAGMA integrity_check(1)").compactMap(\.first?.text)
            guard findings == ["ok"] else { throw SQLiteError(SQLITE_CORRUPT, findings.joined(separator: " ")) }
            try checkKey()
        } catch let error as SQLiteError where error.code == SQLITE_BUSY {
            throw AccessError.inUse(path: path)
        } catch let error as SQLiteError where !Self.isDamage(error) {
            throw Self.notSaved(error, path)
        }
    }

    /// Opens the database and reads its content. Sets a damaged file aside and creates an empty one.
    ///
    /// - Returns: The database, its content, and the findings for `patchbay doctor`.
    static func opened(in folder: String, keys: DerivedKeys) throws -> (AccessDatabase, PersistedState, [String]) {
        do {
            let database = try AccessDatabase(in: folder, keys: keys)
            return (database, try database.read(), [])
        } catch  where isDamage(error) {
            let path = "\(folder)/\(name)"
            let aside = AtomicFile.unusedPath("\(path).damaged")
            for suffix in [""] + companions { rename(path + suffix, aside + suffix) }
            let database = try AccessDatabase(in: folder, keys: keys)
            let finding =
                "\(path) was damaged and is kept as \(aside); no client is paired any more; pair again, or stop the broker and put a"
                + " good copy there"
            return (database, try database.read(), [finding])
        }
    }

    /// Returns true if the file itself is damaged, as opposed to a problem with its disk, owner or lock.
    static func isDamage(_ error: any Error) -> Bool {
        guard let error = error as? SQLiteError else { return false }
        // A missing table or column is SQLITE_ERROR; a damaged value type is a constraint or a mismatch.
        return [SQLITE_CORRUPT, SQLITE_NOTADB, SQLITE_ERROR, SQLITE_CONSTRAINT, SQLITE_MISMATCH, SQLITE_FORMAT]
            .contains(error.code)
    }

    /// Closes the file after a checkpoint of the WAL.
    func close() throws { try file.close() }

    func read() throws -> PersistedState {
        do { return try contents() } catch { throw Self.isDamage(error) ? error : Self.notSaved(error, path) }
    }

    /// Writes a change, its audit entries, and the log's new position. All of it is on the disk when this returns.
    ///
    /// - Throws: `Conflict`; `AccessError.notSaved`, after which nothing was written.
    func commit(
        _ change: ChangeSet,
        lines: [PersistedState.PendingLine],
        head: AuditEntry.Head,
        flushed: Int,
        highWater: MonotonicTime,
        failurePoint: @Sendable (FailurePoint) -> Void
    ) throws {
        failurePoint(.beforeTransaction)
        do {
            try file.transaction {
                if let spent = change.spent { try spend(spent, at: highWater) }
                failurePoint(.afterSpend)
                try write(change)
                try purge(change.purged)
                for line in lines {
                    try file.run(
                        "INSERT INTO outbox (number, text) VALUES (?, ?)",
                        .integer(line.number),
                        .blob(line.text)
                    )
                }
                try file.run("DELETE FROM outbox WHERE number <= ?", .integer(flushed))
                try set("head", to: head)
                try set("highWater", to: highWater)
                failurePoint(.beforeCommit)
            }
        } catch let error as Conflict {
            throw error
        } catch {
            throw Self.notSaved(error, path)
        }
        failurePoint(.afterCommit)
    }

    /// Saves a named value beside the rows, for example the counter of wrong user codes.
    func save(_ value: some Encodable, as name: String) throws(AccessError) {
        do { try set(name, to: value) } catch { throw Self.notSaved(error, path) }
    }

    /// Creates the tables in a new file. In an existing file, a missing table is damage.
    private func makeTables() throws {
        guard try file.run("SELECT count(*) FROM sqlite_master").first?.first == .integer(0) else { return }
        let row = Self.row
        try file.transaction {
            try file.execute(
                """
                CREATE TABLE meta (name TEXT PRIMARY KEY NOT NULL, value BLOB NOT NULL) STRICT, WITHOUT ROWID;
                CREATE TABLE invites (
                    id TEXT PRIMARY KEY NOT NULL, max_uses INTEGER NOT NULL, use_count INTEGER NOT NULL,
                    expires_at INTEGER NOT NULL, is_ended INTEGER NOT NULL, \(row)
                ) STRICT, WITHOUT ROWID;
                CREATE TABLE grants (id TEXT PRIMARY KEY NOT NULL, \(row)) STRICT, WITHOUT ROWID;
                CREATE TABLE approvals (id TEXT PRIMARY KEY NOT NULL, \(row)) STRICT, WITHOUT ROWID;
                CREATE TABLE denials (id TEXT PRIMARY KEY NOT NULL, \(row)) STRICT, WITHOUT ROWID;
                CREATE TABLE secrets (id TEXT PRIMARY KEY NOT NULL, \(row)) STRICT, WITHOUT ROWID;
                CREATE TABLE outbox (number INTEGER PRIMARY KEY NOT NULL, text BLOB NOT NULL) STRICT;
                PRAGMA user_version = \(Self.version);
                """
            )
        }
    }

    /// Adds the tables that a file of an earlier version lacks.
    private func migrate() throws {
        guard try file.run("PRAGMA user_version").first?.first == .integer(0) else { return }
        try file.transaction {
            try file.execute(
                """
                CREATE TABLE denials (id TEXT PRIMARY KEY NOT NULL, \(Self.row)) STRICT, WITHOUT ROWID;
                PRAGMA user_version = \(Self.version);
                """
            )
        }
    }

    private static func notSaved(_ error: any Error, _ path: String) -> AccessError {
        if let error = error as? AccessError { return error }
        let isFull = (error as? SQLiteError)?.code == SQLITE_FULL
        return .notSaved(path: path, reason: isFull ? "no space left on device" : "\(error)")
    }

    private func checkKey() throws {
        try file.transaction {
            if let storedCheck = try file.run("SELECT value FROM meta WHERE name = 'key'").first?.first {
                guard storedCheck == .blob(keys.check) else { throw AccessError.keyChanged(path: "the sealing key") }
            } else {
                try file.run("INSERT INTO meta VALUES ('key', ?)", .blob(keys.check))
            }
        }
    }

    /// Updates the row with a compare-and-set: the second of two redemptions matches no row.
    private func spend(_ invite: InviteRecord, at now: MonotonicTime) throws {
        let body = try JSONCoding.encoder().encode(invite)
        try file.run(
            """
            UPDATE invites SET use_count = use_count + 1, is_ended = ?, body = ?, mac = ?
            WHERE id = ? AND use_count = ? AND use_count < max_uses AND is_ended = 0 AND expires_at > ?
            """,
            .integer(invite.endReason == nil ? 0 : 1),
            .blob(body),
            .blob(keys.mac(for: body, table: "invites", id: invite.id)),
            .text(invite.id),
            .integer(invite.useCount - 1),
            .integer(Int(now.milliseconds))
        )
        guard file.changes == 1 else { throw Conflict() }
    }

    private func write(_ change: ChangeSet) throws {
        for invite in change.invites {
            let body = try JSONCoding.encoder().encode(invite)
            try file.run(
                "INSERT OR REPLACE INTO invites VALUES (?, ?, ?, ?, ?, ?, ?)",
                .text(invite.id),
                .integer(invite.maxUses),
                .integer(invite.useCount),
                .integer(Int(invite.expiresAt.milliseconds)),
                .integer(invite.endReason == nil ? 0 : 1),
                .blob(body),
                .blob(keys.mac(for: body, table: "invites", id: invite.id))
            )
        }
        for grant in change.grants { try put(grant, into: "grants", id: grant.id) }
        for approval in change.approvals { try put(approval, into: "approvals", id: approval.endpoint.text) }
        for denial in change.denials { try put(denial, into: "denials", id: denial.endpoint.text) }
        for secret in change.secrets { try put(secret, into: "secrets", id: secret.endpoint.text) }
        try delete(change.removedApprovals, from: "approvals")
        try delete(change.removedDenials, from: "denials")
        try delete(change.removedSecrets, from: "secrets")
    }

    private func delete(_ endpoints: [EndpointID], from table: String) throws {
        for endpoint in endpoints { try file.run("DELETE FROM \(table) WHERE id = ?", .text(endpoint.text)) }
    }

    private func purge(_ ids: [String]) throws {
        for id in ids {
            try file.run("DELETE FROM invites WHERE id = ?", .text(id))
            try file.run("DELETE FROM grants WHERE id = ?", .text(id))
        }
    }

    private func put(_ record: some Encodable, into table: String, id: String) throws {
        let body = try JSONCoding.encoder().encode(record)
        try file.run(
            "INSERT OR REPLACE INTO \(table) VALUES (?, ?, ?)",
            .text(id),
            .blob(body),
            .blob(keys.mac(for: body, table: table, id: id))
        )
    }

    private func set(_ name: String, to value: some Encodable) throws {
        try file.run(
            "INSERT OR REPLACE INTO meta VALUES (?, ?)",
            .text(name),
            .blob(try JSONCoding.encoder().encode(value))
        )
    }

    private func get<Value: Decodable>(_ name: String) throws -> Value? {
        try file.run("SELECT value FROM meta WHERE name = ?", .text(name)).first?.first?.blob
            .flatMap { try? JSONCoding.decoder().decode(Value.self, from: $0) }
    }

    private func contents() throws -> PersistedState {
        var contents = PersistedState()
        contents.invites = try rows(of: "invites", damaged: &contents.damaged)
        contents.grants = try rows(of: "grants", damaged: &contents.damaged)
        contents.approvals = try rows(of: "approvals", damaged: &contents.damaged)
        contents.denials = try rows(of: "denials", damaged: &contents.damaged)
        contents.secrets = try rows(of: "secrets", damaged: &contents.damaged)
        contents.head = try get("head") ?? .none
        contents.highWater = try get("highWater")
        contents.userCodeLimiter = try get("userCodeLimiter") ?? UserCodeAttemptLimiter()
        contents.pending = try file.run("SELECT number, text FROM outbox ORDER BY number").compactMap { row in
            guard let number = row[0].integer, let text = row[1].blob else { return nil }
            return PersistedState.PendingLine(number: number, text: text)
        }
        return contents
    }

    /// Returns the rows with a valid MAC. Reports and skips the others.
    private func rows<Record: Decodable>(of table: String, damaged: inout [String]) throws -> [Record] {
        try file.run("SELECT id, body, mac FROM \(table)").compactMap { row in
            guard let id = row[0].text, let body = row[1].blob, let mac = row[2].blob,
                keys.verifyMAC(mac, for: body, table: table, id: id),
                let record = try? JSONCoding.decoder().decode(Record.self, from: body)
            else {
                let name = row[0].text ?? "?"
                damaged.append(
                    "\(table.dropLast()) \(SanitizedText(name)) in \(path) was changed outside of Patchbay and is ignored"
                )
                return nil
            }
            return record
        }
    }
}

import CSQLite
import Crypto
import FoundationEssentials
import Model

/// `pairing.sqlite`: what must be true after a crash.
///
/// Each row is its record as JSON with a code over it (`Keyring`), beside the few columns that a compare-and-set needs.
/// Blocks, as files do; belongs to the store's thread. Nobody else can open the file meanwhile.
struct AccessDatabase {
    static let name = "pairing.sqlite"
    static let companions = ["-wal", "-shm", "-journal"]

    /// The spent row was not as the ledger saw it; nothing was written.
    struct LostRace: Error {}

    let path: String
    private let file: SQLite
    private let keys: Keyring

    /// Opens it, and makes it when it is not there.
    ///
    /// - Throws: `AccessError`, or `SQLiteError` for which `isDamage` tells what to do.
    init(in folder: String, keys: Keyring) throws {
        path = "\(folder)/\(Self.name)"
        self.keys = keys
        for suffix in [""] + Self.companions { try PrivateFile.check(file: path + suffix) }
        if try !PrivateFile.check(file: path) {
            // SQLite gives its other files the mode of this one.
            try PrivateFile.make(path)
            try PrivateFile.sync(folderOf: path)
        }
        do {
            file = try SQLite(opening: path)
            // Alone: a second broker is refused, and no shared memory file is needed.
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
            let findings = try file.run("PRAGMA integrity_check(1)").compactMap(\.first?.text)
            guard findings == ["ok"] else { throw SQLiteError(SQLITE_CORRUPT, findings.joined(separator: " ")) }
            try checkKey()
        } catch let error as SQLiteError where error.code == SQLITE_BUSY {
            throw AccessError.inUse(path: path)
        } catch let error as SQLiteError where !Self.isDamage(error) {
            throw Self.notSaved(error, path)
        }
    }

    /// Whether the file itself is broken, and not its disk, its owner or its lock.
    static func isDamage(_ error: any Error) -> Bool {
        guard let error = error as? SQLiteError else { return false }
        // Our own tables or columns missing is SQLITE_ERROR; a damaged type of value is a constraint or a mismatch.
        return [SQLITE_CORRUPT, SQLITE_NOTADB, SQLITE_ERROR, SQLITE_CONSTRAINT, SQLITE_MISMATCH, SQLITE_FORMAT]
            .contains(error.code)
    }

    /// Closes the file; the WAL is brought into it and removed.
    func close() throws { try file.close() }

    func read() throws -> PersistedState {
        do { return try contents() } catch { throw Self.isDamage(error) ? error : Self.notSaved(error, path) }
    }

    /// Writes a change, its audit lines and where the log stands after them. When it returns, it is on the disk.
    ///
    /// - Throws: `LostRace`; `AccessError.notSaved`, after which nothing was written.
    func commit(
        _ change: ChangeSet,
        lines: [PersistedState.PendingLine],
        head: AuditEntry.Head,
        flushed: Int,
        highWater: MonotonicTime,
        crash: @Sendable (FailurePoint) -> Void
    ) throws {
        crash(.beforeTransaction)
        do {
            try file.transaction {
                if let spent = change.spent { try spend(spent, at: highWater) }
                crash(.afterSpend)
                try write(change)
                try forget(change.forgotten)
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
                crash(.beforeCommit)
            }
        } catch let error as LostRace {
            throw error
        } catch {
            throw Self.notSaved(error, path)
        }
        crash(.afterCommit)
    }

    /// Keeps something beside the rows: the clock's high-water mark, the count of wrong codes.
    func keep(_ value: some Encodable, as name: String) throws(AccessError) {
        do { try set(name, to: value) } catch { throw Self.notSaved(error, path) }
    }

    /// A file that is new gets its tables; of any other, what is missing is damage.
    private func makeTables() throws {
        guard try file.run("SELECT count(*) FROM sqlite_master").first?.first == .integer(0) else { return }
        let row = "body BLOB NOT NULL, code BLOB NOT NULL"
        try file.transaction {
            try file.execute(
                """
                CREATE TABLE meta (name TEXT PRIMARY KEY NOT NULL, value BLOB NOT NULL) STRICT, WITHOUT ROWID;
                CREATE TABLE invites (
                    id TEXT PRIMARY KEY NOT NULL, uses INTEGER NOT NULL, used INTEGER NOT NULL,
                    expires INTEGER NOT NULL, ended INTEGER NOT NULL, \(row)
                ) STRICT, WITHOUT ROWID;
                CREATE TABLE grants (id TEXT PRIMARY KEY NOT NULL, \(row)) STRICT, WITHOUT ROWID;
                CREATE TABLE approvals (id TEXT PRIMARY KEY NOT NULL, \(row)) STRICT, WITHOUT ROWID;
                CREATE TABLE secrets (id TEXT PRIMARY KEY NOT NULL, \(row)) STRICT, WITHOUT ROWID;
                CREATE TABLE outbox (number INTEGER PRIMARY KEY NOT NULL, text BLOB NOT NULL) STRICT;
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
            if let kept = try file.run("SELECT value FROM meta WHERE name = 'key'").first?.first {
                guard kept == .blob(keys.check) else { throw AccessError.keyChanged(path: "the sealing key") }
            } else {
                try file.run("INSERT INTO meta VALUES ('key', ?)", .blob(keys.check))
            }
        }
    }

    /// The compare-and-set: whoever comes second finds no such row.
    private func spend(_ invite: InviteRecord, at now: MonotonicTime) throws {
        let body = try JSONCoding.encoder().encode(invite)
        try file.run(
            """
            UPDATE invites SET used = used + 1, ended = ?, body = ?, code = ?
            WHERE id = ? AND used = ? AND used < uses AND ended = 0 AND expires > ?
            """,
            .integer(invite.end == nil ? 0 : 1),
            .blob(body),
            .blob(keys.code(for: body, table: "invites", id: invite.id)),
            .text(invite.id),
            .integer(invite.used - 1),
            .integer(Int(now.milliseconds))
        )
        guard file.changes == 1 else { throw LostRace() }
    }

    private func write(_ change: ChangeSet) throws {
        for invite in change.invites {
            let body = try JSONCoding.encoder().encode(invite)
            try file.run(
                "INSERT OR REPLACE INTO invites VALUES (?, ?, ?, ?, ?, ?, ?)",
                .text(invite.id),
                .integer(invite.uses),
                .integer(invite.used),
                .integer(Int(invite.expires.milliseconds)),
                .integer(invite.end == nil ? 0 : 1),
                .blob(body),
                .blob(keys.code(for: body, table: "invites", id: invite.id))
            )
        }
        for grant in change.grants { try put(grant, into: "grants", id: grant.id) }
        for approval in change.approvals { try put(approval, into: "approvals", id: approval.endpoint.text) }
        for secret in change.secrets { try put(secret, into: "secrets", id: secret.endpoint.text) }
        for endpoint in change.unapproved {
            try file.run("DELETE FROM approvals WHERE id = ?", .text(endpoint.text))
        }
        for endpoint in change.unsealed { try file.run("DELETE FROM secrets WHERE id = ?", .text(endpoint.text)) }
    }

    private func forget(_ ids: [String]) throws {
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
            .blob(keys.code(for: body, table: table, id: id))
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
        contents.secrets = try rows(of: "secrets", damaged: &contents.damaged)
        contents.head = try get("head") ?? .none
        contents.highWater = try get("highWater")
        contents.gate = try get("gate") ?? UserCodeAttemptLimiter()
        contents.pending = try file.run("SELECT number, text FROM outbox ORDER BY number").compactMap { row in
            guard let number = row[0].integer, let text = row[1].blob else { return nil }
            return PersistedState.PendingLine(number: number, text: text)
        }
        return contents
    }

    /// The rows that are as they were written; the others are told of, and count as not there.
    private func rows<Record: Decodable>(of table: String, damaged: inout [String]) throws -> [Record] {
        try file.run("SELECT id, body, code FROM \(table)").compactMap { row in
            guard let id = row[0].text, let body = row[1].blob, let code = row[2].blob,
                keys.isCode(code, for: body, table: table, id: id),
                let record = try? JSONCoding.decoder().decode(Record.self, from: body)
            else {
                let name = row[0].text ?? "?"
                damaged.append(
                    "\(table.dropLast()) \(SanitizedText(name)) in \(path) was changed from outside; it does not count"
                )
                return nil
            }
            return record
        }
    }
}

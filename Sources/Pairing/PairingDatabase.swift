import Crypto
import FoundationEssentials
import GRDB
import Model

/// `pairing.sqlite`: what must be true after a crash.
///
/// Each row is its record as JSON with a code over it (`Keyring`), beside the few columns that a compare-and-set needs.
/// Blocks, as files do; belongs to the store's thread. Nobody else can open the file meanwhile.
struct PairingDatabase: Sendable {
    static let name = "pairing.sqlite"
    static let companions = ["-wal", "-shm", "-journal"]

    /// The spent row was not as the ledger saw it; nothing was written.
    struct LostRace: Error {}

    let path: String
    private let queue: DatabaseQueue
    private let keys: Keyring

    /// Opens it, and makes it when it is not there.
    ///
    /// - Throws: `PairingError`, or `DatabaseError` for which `isDamage` tells what to do.
    init(in folder: String, keys: Keyring) throws {
        path = "\(folder)/\(Self.name)"
        self.keys = keys
        for suffix in [""] + Self.companions { try PrivateFile.check(file: path + suffix) }
        if try !PrivateFile.check(file: path) {
            // SQLite gives its other files the mode of this one.
            try PrivateFile.make(path)
            try PrivateFile.sync(folderOf: path)
        }
        var configuration = Configuration()
        configuration.label = "pairing"
        configuration.prepareDatabase { database in
            // Alone: a second broker is refused, and no shared memory file is needed.
            try database.execute(
                sql: """
                    PRAGMA locking_mode = EXCLUSIVE;
                    PRAGMA journal_mode = WAL;
                    PRAGMA synchronous = FULL;
                    PRAGMA secure_delete = ON;
                    PRAGMA cell_size_check = ON;
                    PRAGMA wal_autocheckpoint = 256;
                    """
            )
        }
        do {
            queue = try DatabaseQueue(path: path, configuration: configuration)
            try Self.migrator.migrate(queue)
            let findings = try queue.read { try String.fetchAll($0, sql: "PRAGMA integrity_check(1)") }
            guard findings == ["ok"] else {
                throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: findings.joined(separator: " "))
            }
            try checkKey()
        } catch let error as DatabaseError where error.resultCode == .SQLITE_BUSY {
            throw PairingError.inUse(path: path)
        } catch let error as DatabaseError where !Self.isDamage(error) {
            throw Self.notSaved(error, path)
        }
    }

    /// Whether the file itself is broken, and not its disk, its owner or its lock.
    static func isDamage(_ error: any Error) -> Bool {
        // What GRDB itself keeps, the names of the migrations done, may be damaged too.
        if error is RowDecodingError { return true }
        guard let error = error as? DatabaseError else { return false }
        // Our own tables or columns missing is SQLITE_ERROR; a damaged type of value is a constraint or a mismatch.
        return [.SQLITE_CORRUPT, .SQLITE_NOTADB, .SQLITE_ERROR, .SQLITE_CONSTRAINT, .SQLITE_MISMATCH, .SQLITE_FORMAT]
            .contains(error.resultCode)
    }

    /// Closes the file; the WAL is brought into it and removed.
    func close() throws { try queue.close() }

    func read() throws -> Contents {
        do { return try queue.read(read) } catch { throw Self.isDamage(error) ? error : Self.notSaved(error, path) }
    }

    /// Writes a change, its audit lines and where the log stands after them. When it returns, it is on the disk.
    ///
    /// - Throws: `LostRace`; `PairingError.notSaved`, after which nothing was written.
    func commit(
        _ change: Change,
        lines: [Contents.PendingLine],
        head: AuditLine.Head,
        flushed: Int,
        highWater: EffectiveTime,
        crash: @Sendable (CrashPoint) -> Void
    ) throws {
        crash(.beforeTransaction)
        do {
            try queue.writeWithoutTransaction { database in
                try database.inTransaction(.immediate) {
                    if let spent = change.spent { try spend(spent, at: highWater, in: database) }
                    crash(.afterSpend)
                    try write(change, in: database)
                    try forget(change.forgotten, in: database)
                    for line in lines {
                        try database.cachedStatement(sql: "INSERT INTO outbox (number, text) VALUES (?, ?)")
                            .execute(arguments: [line.number, line.text])
                    }
                    try database.cachedStatement(sql: "DELETE FROM outbox WHERE number <= ?").execute(arguments: [
                        flushed
                    ])
                    try set("head", to: head, in: database)
                    try set("highWater", to: highWater, in: database)
                    crash(.beforeCommit)
                    return .commit
                }
            }
        } catch let error as LostRace {
            throw error
        } catch {
            throw Self.notSaved(error, path)
        }
        crash(.afterCommit)
    }

    /// Keeps something beside the rows: the clock's high-water mark, the count of wrong codes.
    func keep(_ value: some Encodable, as name: String) throws(PairingError) {
        do { try queue.write { try set(name, to: value, in: $0) } } catch { throw Self.notSaved(error, path) }
    }

    private static var migrator: DatabaseMigrator {
        var migrator = DatabaseMigrator()
        migrator.registerMigration("1") { database in
            let row = "body BLOB NOT NULL, code BLOB NOT NULL"
            try database.execute(
                sql: """
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
        return migrator
    }

    private static func notSaved(_ error: any Error, _ path: String) -> PairingError {
        if let error = error as? PairingError { return error }
        guard let error = error as? DatabaseError else { return .notSaved(path: path, reason: "\(error)") }
        if error.resultCode == .SQLITE_FULL { return .notSaved(path: path, reason: "no space left on device") }
        return .notSaved(path: path, reason: error.message ?? error.resultCode.description)
    }

    private func checkKey() throws {
        try queue.write { database in
            let kept = try Data.fetchOne(database, sql: "SELECT value FROM meta WHERE name = 'key'")
            if let kept {
                guard kept == keys.check else { throw PairingError.keyChanged(path: "the sealing key") }
            } else {
                try database.execute(sql: "INSERT INTO meta VALUES ('key', ?)", arguments: [keys.check])
            }
        }
    }

    /// The compare-and-set: whoever comes second finds no such row.
    private func spend(_ invite: InviteRecord, at now: EffectiveTime, in database: Database) throws {
        let body = try Wire.encoder().encode(invite)
        try database.cachedStatement(
            sql: """
                UPDATE invites SET used = used + 1, ended = ?, body = ?, code = ?
                WHERE id = ? AND used = ? AND used < uses AND ended = 0 AND expires > ?
                """
        ).execute(arguments: [
            invite.end == nil ? 0 : 1, body, keys.code(for: body, table: "invites", id: invite.id),
            invite.id, invite.used - 1, now.milliseconds,
        ])
        guard database.changesCount == 1 else { throw LostRace() }
    }

    private func write(_ change: Change, in database: Database) throws {
        for invite in change.invites {
            let body = try Wire.encoder().encode(invite)
            try database.cachedStatement(sql: "INSERT OR REPLACE INTO invites VALUES (?, ?, ?, ?, ?, ?, ?)")
                .execute(arguments: [
                    invite.id, invite.uses, invite.used, invite.expires.milliseconds, invite.end == nil ? 0 : 1,
                    body, keys.code(for: body, table: "invites", id: invite.id),
                ])
        }
        for grant in change.grants { try put(grant, into: "grants", id: grant.id, in: database) }
        for approval in change.approvals {
            try put(approval, into: "approvals", id: approval.endpoint.text, in: database)
        }
        for secret in change.secrets { try put(secret, into: "secrets", id: secret.endpoint.text, in: database) }
        for endpoint in change.unapproved {
            try database.execute(sql: "DELETE FROM approvals WHERE id = ?", arguments: [endpoint.text])
        }
        for endpoint in change.unsealed {
            try database.execute(sql: "DELETE FROM secrets WHERE id = ?", arguments: [endpoint.text])
        }
    }

    private func forget(_ ids: [String], in database: Database) throws {
        for id in ids {
            try database.execute(sql: "DELETE FROM invites WHERE id = ?", arguments: [id])
            try database.execute(sql: "DELETE FROM grants WHERE id = ?", arguments: [id])
        }
    }

    private func put(_ record: some Encodable, into table: String, id: String, in database: Database) throws {
        let body = try Wire.encoder().encode(record)
        try database.cachedStatement(sql: "INSERT OR REPLACE INTO \(table) VALUES (?, ?, ?)")
            .execute(arguments: [id, body, keys.code(for: body, table: table, id: id)])
    }

    private func set(_ name: String, to value: some Encodable, in database: Database) throws {
        try database.cachedStatement(sql: "INSERT OR REPLACE INTO meta VALUES (?, ?)")
            .execute(arguments: [name, try Wire.encoder().encode(value)])
    }

    private func get<Value: Decodable>(_ name: String, in database: Database) throws -> Value? {
        try Data.fetchOne(database, sql: "SELECT value FROM meta WHERE name = ?", arguments: [name])
            .flatMap { try? Wire.decoder().decode(Value.self, from: $0) }
    }

    private func read(_ database: Database) throws -> Contents {
        var contents = Contents()
        contents.invites = try rows(of: "invites", database, damaged: &contents.damaged)
        contents.grants = try rows(of: "grants", database, damaged: &contents.damaged)
        contents.approvals = try rows(of: "approvals", database, damaged: &contents.damaged)
        contents.secrets = try rows(of: "secrets", database, damaged: &contents.damaged)
        contents.head = try get("head", in: database) ?? .none
        contents.highWater = try get("highWater", in: database)
        contents.gate = try get("gate", in: database) ?? CodeGate()
        contents.pending = try Row.fetchAll(database, sql: "SELECT number, text FROM outbox ORDER BY number").compactMap
        {
            guard let number = Int.fromDatabaseValue($0[0]), let text = Data.fromDatabaseValue($0[1]) else {
                return nil
            }
            return Contents.PendingLine(number: number, text: text)
        }
        return contents
    }

    /// The rows that are as they were written; the others are told of, and count as not there.
    private func rows<Record: Decodable>(
        of table: String,
        _ database: Database,
        damaged: inout [String]
    ) throws -> [Record] {
        try Row.fetchAll(database, sql: "SELECT id, body, code FROM \(table)").compactMap { row in
            guard let id = String.fromDatabaseValue(row[0]), let body = Data.fromDatabaseValue(row[1]),
                let code = Data.fromDatabaseValue(row[2]), keys.isCode(code, for: body, table: table, id: id),
                let record = try? Wire.decoder().decode(Record.self, from: body)
            else {
                let name = String.fromDatabaseValue(row[0]) ?? "?"
                damaged.append(
                    "\(table.dropLast()) \(Untrusted(name)) in \(path) was changed from outside; it does not count"
                )
                return nil
            }
            return record
        }
    }
}

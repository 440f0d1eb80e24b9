import CSQLite
import FoundationEssentials

/// A connection to an SQLite file.
///
/// Does not wait for locks: if another process holds the file, the first statement throws SQLITE_BUSY. Not Sendable,
/// because SQLite's own mutexes are off (SQLITE_OPEN_NOMUTEX); allows one owner at a time.
final class SQLite {
    private let connection: OpaquePointer
    /// Prepared statements by SQL text; a few dozen.
    private var statements: [String: OpaquePointer] = [:]
    private var isOpen = true

    /// Opens a file, and creates an empty one if missing.
    init(opening path: String) throws(SQLiteError) {
        var connection: OpaquePointer?
        let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX
        let code = sqlite3_open_v2(path, &connection, flags, nil)
        guard let connection, code == SQLITE_OK else {
            // SQLite returns a connection to close even after a failed open, except when memory is exhausted.
            let error = SQLiteError(code, of: connection)
            sqlite3_close(connection)
            throw error
        }
        self.connection = connection
    }

    deinit { try? close() }

    /// Closes the file after a checkpoint of the WAL.
    func close() throws(SQLiteError) {
        guard isOpen else { return }
        for statement in statements.values { sqlite3_finalize(statement) }
        statements = [:]
        try check(sqlite3_close(connection))
        isOpen = false
    }

    /// Number of rows that the last statement changed.
    var changes: Int { Int(sqlite3_changes(connection)) }

    /// Runs a script of statements and discards their rows.
    func execute(_ script: String) throws(SQLiteError) {
        try check(sqlite3_exec(connection, script, nil, nil, nil))
    }

    /// Runs one statement with a value for each `?`.
    ///
    /// - Returns: The rows of the result.
    @discardableResult
    func run(_ sql: String, _ values: SQLiteValue...) throws(SQLiteError) -> [[SQLiteValue]] {
        let statement = try prepared(sql)
        defer {
            sqlite3_reset(statement)
            sqlite3_clear_bindings(statement)
        }
        for (index, value) in values.enumerated() { try check(value.bind(to: statement, at: CInt(index + 1))) }
        var rows: [[SQLiteValue]] = []
        while true {
            let code = sqlite3_step(statement)
            guard code == SQLITE_ROW else {
                guard code == SQLITE_DONE else { throw SQLiteError(code, of: connection) }
                return rows
            }
            rows.append((0..<sqlite3_column_count(statement)).map { SQLiteValue(statement, column: $0) })
        }
    }

    /// Runs `body` in a transaction. Rolls back when `body` or the commit throws.
    func transaction(_ body: () throws -> Void) throws {
        try run("BEGIN IMMEDIATE")
        do {
            try body()
            try run("COMMIT")
        } catch {
            // After some errors, for example a full disk, SQLite has already rolled back (lang_transaction.html).
            if sqlite3_get_autocommit(connection) == 0 { _ = try? run("ROLLBACK") }
            throw error
        }
    }

    private func prepared(_ sql: String) throws(SQLiteError) -> OpaquePointer {
        if let statement = statements[sql] { return statement }
        var statement: OpaquePointer?
        try check(sqlite3_prepare_v3(connection, sql, -1, CUnsignedInt(SQLITE_PREPARE_PERSISTENT), &statement, nil))
        guard let statement else { throw SQLiteError(SQLITE_MISUSE, "no statement: \(sql)") }
        statements[sql] = statement
        return statement
    }

    private func check(_ code: CInt) throws(SQLiteError) {
        guard code == SQLITE_OK else { throw SQLiteError(code, of: connection) }
    }
}

/// An error of SQLite.
struct SQLiteError: Error, Hashable, CustomStringConvertible {
    /// A primary result code, for example `SQLITE_FULL`.
    let code: CInt
    /// SQLite's message.
    let description: String

    init(_ code: CInt, _ description: String) {
        // The last byte of an extended code is the primary code (rescode.html).
        self.code = code & 0xFF
        self.description = description
    }

    /// The last error of a connection. The connection is nil when SQLite ran out of memory.
    init(_ code: CInt, of connection: OpaquePointer?) {
        self.init(code, String(cString: connection.map { sqlite3_errmsg($0) } ?? sqlite3_errstr(code)))
    }
}

/// A value in a row or for a statement. Patchbay stores no floating-point numbers; one in a row is read as null.
enum SQLiteValue: Hashable, Sendable {
    case null
    case integer(Int)
    case text(String)
    case blob(Data)

    /// Reads a column of the current row.
    init(_ statement: OpaquePointer, column: CInt) {
        switch sqlite3_column_type(statement, column) {
        case SQLITE_INTEGER:
            self = .integer(Int(sqlite3_column_int64(statement, column)))
        case SQLITE_TEXT:
            // Get the pointer first: only then is the count that of the UTF-8 text (capi3ref.html,
            // sqlite3_column_blob).
            let start = sqlite3_column_text(statement, column)
            let count = Int(sqlite3_column_bytes(statement, column))
            self = .text(String(decoding: UnsafeBufferPointer(start: start, count: count), as: UTF8.self))
        case SQLITE_BLOB:
            let start = sqlite3_column_blob(statement, column)
            let count = Int(sqlite3_column_bytes(statement, column))
            self = .blob(start.map { Data(bytes: $0, count: count) } ?? Data())
        default:
            self = .null
        }
    }

    /// Binds the value to a parameter of a statement.
    ///
    /// - Returns: SQLite's result code.
    func bind(to statement: OpaquePointer, at index: CInt) -> CInt {
        switch self {
        case .null: sqlite3_bind_null(statement, index)
        case .integer(let number): sqlite3_bind_int64(statement, index, sqlite3_int64(number))
        case .text(let text): CSQLite_bind_text(statement, index, text, CInt(text.utf8.count))
        case .blob(let data):
            data.withUnsafeBytes { CSQLite_bind_blob(statement, index, $0.baseAddress, CInt($0.count)) }
        }
    }

    var integer: Int? { if case .integer(let value) = self { value } else { nil } }
    var text: String? { if case .text(let value) = self { value } else { nil } }
    var blob: Data? { if case .blob(let value) = self { value } else { nil } }
}

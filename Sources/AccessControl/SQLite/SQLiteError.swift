import CSQLite

/// What SQLite could not do.
struct SQLiteError: Error, Hashable, CustomStringConvertible {
    /// A primary result code, as `SQLITE_FULL`.
    let code: CInt
    /// In SQLite's words.
    let description: String

    init(_ code: CInt, _ description: String) {
        // Extended codes have the primary one in their last byte (rescode.html).
        self.code = code & 0xFF
        self.description = description
    }

    /// The last error of a connection; nil where there was no memory for one.
    init(_ code: CInt, of connection: OpaquePointer?) {
        self.init(code, String(cString: connection.map { sqlite3_errmsg($0) } ?? sqlite3_errstr(code)))
    }
}

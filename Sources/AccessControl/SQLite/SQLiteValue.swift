import CSQLite
import FoundationEssentials

/// A value in a row or for a statement. Floating-point numbers are kept nowhere; one that is there all the same is null.
enum SQLiteValue: Hashable, Sendable {
    case null
    case integer(Int)
    case text(String)
    case blob(Data)

    /// What a row has in a column.
    init(_ statement: OpaquePointer, column: CInt) {
        switch sqlite3_column_type(statement, column) {
        case SQLITE_INTEGER:
            self = .integer(Int(sqlite3_column_int64(statement, column)))
        case SQLITE_TEXT:
            // The pointer first: only after it is the count that of UTF-8 (capi3ref.html, sqlite3_column_blob).
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

    /// - Returns: SQLite's result code.
    func bind(to statement: OpaquePointer, at place: CInt) -> CInt {
        switch self {
        case .null: sqlite3_bind_null(statement, place)
        case .integer(let number): sqlite3_bind_int64(statement, place, sqlite3_int64(number))
        case .text(let text): CSQLite_bind_text(statement, place, text, CInt(text.utf8.count))
        case .blob(let data):
            data.withUnsafeBytes { CSQLite_bind_blob(statement, place, $0.baseAddress, CInt($0.count)) }
        }
    }

    var integer: Int? { if case .integer(let value) = self { value } else { nil } }
    var text: String? { if case .text(let value) = self { value } else { nil } }
    var blob: Data? { if case .blob(let value) = self { value } else { nil } }
}

import CSQLite
import FoundationEssentials
import TestSupport
import Testing

@testable import AccessControl

@Suite(.scratchFolder) struct SQLiteTests {
    private let scratch = ScratchFolder.current

    private struct Stop: Error {}

    private func withFile(_ body: (SQLite) throws -> Void) async throws {
        let file = try SQLite(opening: scratch.file("file"))
        try file.execute("CREATE TABLE things (id INTEGER PRIMARY KEY, thing ANY) STRICT")
        try body(file)
        try file.close()
    }

    @Test(
        arguments: [
            .null, .integer(.min), .integer(.max), .text(""), .text("a\0b, \u{1F41E}"), .blob(Data()),
            .blob(Data([0, 255, 0])),
        ] as [SQLiteValue]
    )
    func `a value round-trips`(value: SQLiteValue) async throws {
        try await withFile { file in
            try file.run("INSERT INTO things VALUES (1, ?)", value)

            #expect(try file.run("SELECT thing, id FROM things") == [[value, .integer(1)]])
        }
    }

    @Test func `a reused statement has no earlier bindings`() async throws {
        try await withFile { file in
            for id in 1...3 { try file.run("INSERT INTO things VALUES (?, ?)", .integer(id), .text("\(id)")) }
            try file.run("INSERT INTO things VALUES (?, ?)", .integer(4))

            #expect(try file.run("SELECT thing FROM things WHERE id > 2") == [[.text("3")], [.null]])
            try file.run("UPDATE things SET thing = NULL WHERE id < ?", .integer(3))
            #expect(file.changes == 2)
        }
    }

    @Test func `a transaction that throws is rolled back, and the next one succeeds`() async throws {
        try await withFile { file in
            #expect(throws: Stop.self) {
                try file.transaction {
                    try file.run("INSERT INTO things VALUES (1, 1)")
                    throw Stop()
                }
            }
            #expect(try file.run("SELECT * FROM things").isEmpty)

            let refusal = #expect(throws: SQLiteError.self) {
                try file.transaction {
                    try file.run("INSERT INTO things VALUES (1, 1)")
                    try file.run("INSERT INTO things VALUES (1, 2)")
                }
            }
            #expect(refusal?.code == SQLITE_CONSTRAINT)
            #expect(refusal?.description.contains("things.id") == true)
            try file.transaction { try file.run("INSERT INTO things VALUES (1, 3)") }
            #expect(try file.run("SELECT thing FROM things") == [[.integer(3)]])
        }
    }

    @Test func `a file locked by another connection is busy at once`() async throws {
        let (one, other) = (try SQLite(opening: scratch.file("file")), try SQLite(opening: scratch.file("file")))
        try one.transaction {
            let refusal = #expect(throws: SQLiteError.self) { try other.run("BEGIN IMMEDIATE") }
            #expect(refusal?.code == SQLITE_BUSY)
        }
    }

    @Test func `opening a file in a missing folder fails`() {
        let refusal = #expect(throws: SQLiteError.self) { try SQLite(opening: "/nowhere/file") }

        #expect(refusal?.code == SQLITE_CANTOPEN)
    }
}

import TOML
import Testing

@Suite struct ByteOrderMarkTests {
    @Test func `a byte order mark at the beginning is skipped, and positions stay right`() throws {
        let table = TOMLTable(try TOMLDocument(parsing: "\u{FEFF}b = 1\n", file: "a.toml"))
        #expect(try table.number("b", in: 0...9) == 1)

        let error = #expect(throws: TOMLError.self) { try TOMLDocument(parsing: "\u{FEFF}a = ?\n", file: "a.toml") }
        #expect(error?.description.hasPrefix("a.toml:1:5:") == true, "\(String(describing: error))")
    }

    @Test func `a byte order mark at another place is an error`() {
        #expect(throws: TOMLError.self) { try TOMLDocument(parsing: "a = 1\n\u{FEFF}b = 2\n", file: "a.toml") }
    }
}

import FoundationEssentials
import Glibc
import Testing

@testable import patchbay

@Suite struct ConsoleTests {
    @Test func `control characters in JSON are escaped without changing its meaning`() throws {
        let values = ["\u{1B}[2J", "\u{9B}2J", "a\u{202E}b", "\u{E0001}", "\u{7F}", "grün 👩‍👧", "q\"\\ \n"]
        let json = String(decoding: try JSONEncoder().encode(values), as: UTF8.self)

        let shown = Console.escaped(json)

        #expect(shown.contains(#"a\u202eb"#) && shown.contains(#"\udb40\udc01"#) && shown.contains("grün"))
        #expect(Console.plain(shown) == shown)
        #expect(try JSONDecoder().decode([String].self, from: Data(shown.utf8)) == values)
    }

    @Test func `plain text keeps line breaks and loses escape sequences`() {
        #expect(Console.plain("one\n\u{1B}[31mtwo\u{202E}\n") == "one\n\u{FFFD}[31mtwo\u{FFFD}\n")
    }

    @Test func `a full disk is an error, not a closed pipe`() throws {
        let full = open("/dev/full", O_WRONLY)
        defer { close(full) }

        let error = #expect(throws: CLIError.self) { try Console(descriptor: full, color: .never).line("x") }

        #expect(error?.message == "the output cannot be written: No space left on device")
    }
}

import ArgumentParser
import FoundationEssentials
import Glibc
import TestSupport
import Testing

@testable import patchbay

@Suite struct ListOptionsTests {
    /// Prints a list of these IDs and returns the output.
    private func output(of ids: [String], _ arguments: String...) async throws -> String {
        try await withScratchFolder { scratch in
            let path = scratch.file("output")
            let file = open(path, O_WRONLY | O_CREAT, 0o600)
            defer { close(file) }
            let table = Table(of: ids, [.init("ID") { $0 }])
            try ListOptions.parse(arguments).show(
                ["items": ids],
                ids: ids,
                table: table,
                ifEmpty: "No items.",
                footer: "Remove an item with `rm`.",
                on: Console(descriptor: file, color: .never)
            )
            return String(decoding: try Data(contentsOf: URL(filePath: path)), as: UTF8.self)
        }
    }

    @Test func `a list is a table with a footer, or one sentence`() async throws {
        #expect(try await output(of: ["a", "b"]) == "ID\na\nb\nRemove an item with `rm`.\n")
        #expect(try await output(of: []) == "No items.\n")
    }

    @Test func `the footer names the broker of the command`() throws {
        let options = try GlobalOptions.parse(["--broker", "lab"])
        #expect(options.hint.completed("See `patchbay show ID`.") == "See `patchbay show --broker lab ID`.")
    }

    @Test func `JSON is one document, and the quiet output only IDs, even without items`() async throws {
        #expect(try await output(of: ["a", "b"], "--json") == "{\"items\":[\"a\",\"b\"],\"schema\":1}\n")
        #expect(try await output(of: [], "--json") == "{\"items\":[],\"schema\":1}\n")
        #expect(try await output(of: ["a", "b"], "--quiet") == "a\nb\n")
        #expect(try await output(of: [], "-q").isEmpty)
    }
}

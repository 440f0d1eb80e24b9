import TOML
import Testing

/// One run reports the mistakes of a whole file.
@Suite struct RecoveryTests {
    /// Returns the errors of a file with the tables `a` and `b`, of which each has the key `n` with a number.
    private func errors(_ text: String) -> [String] {
        var errors = TOMLErrorCollector()
        do {
            let root = TOMLTable(try TOMLDocument(recovering: text, file: "f", errors: &errors))
            errors.attempt { () throws(TOMLError) in try root.allow(["a", "b"]) }
            for name in ["a", "b"] {
                errors.attempt { () throws(TOMLError) in
                    guard let table = try root.table(name) else { return }
                    try table.allow(["n"])
                    _ = try table.required("n", .number(in: 1...9))
                }
            }
        } catch { return error.errors.map(\.description) }
        return (TOMLError.joining(errors.errors)?.errors ?? []).map(\.description)
    }

    @Test func `syntax errors, unknown keys and wrong values are reported together, in the order of the lines`() {
        let words = errors("[a]\nn = debug\n\n[b]\nn = 10\nx = 1\n[c]\ny = = 1\n")
        #expect(words.map { String($0.prefix(4)) } == ["f:2:", "f:6:", "f:7:", "f:8:"], "\(words)")
        #expect(errors("[a]\nn = yes\n[b]\nn = 10\n").count == 2)
    }

    @Test func `a key in a statement with a mistake is not missing`() {
        let words = errors("[a]\nn = nine\n")
        #expect(words.count == 1 && words[0].hasPrefix("f:2:"), "\(words)")
    }

    @Test func `a table below a broken header is left out, and a list without its end up to the next key`() {
        let header = errors("[a\nx = 1\ny = 2\n[b]\nn = 3\n")
        #expect(header.count == 1 && header[0].hasPrefix("f:1:"), "\(header)")
        let list = errors("[a]\nn = [1,\n  2\n[b]\nx = 3\nn = 1\n")
        #expect(list.count <= 3 && list.contains { $0.contains("the list that begins in line 2") }, "\(list)")
    }

    @Test func `a valid file has no error, and a file of mistakes ends after twenty`() {
        #expect(errors("[a]\r\nn = 1\r\n[b]\r\nn = 2\r\n").isEmpty)
        #expect(errors(String(repeating: "a = x\n", count: 1_000)).count == 21)
    }
}

import Testing

/// The bounds of the waits in tests.
@Suite struct FixtureLimitTests {
    @Test func `a test waits for a server for at least 60 s`() throws {
        let shorter = try ProjectFile.swift(in: "Tests").flatMap { file in
            try file.lines().filter { $0.contains(/waitForLine\(.*within: \.seconds\([1-5]?[0-9]\)/) }
                .map { "\(file.path): \($0)" }
        }
        // This client must be cut at once.
        #expect(shorter.filter { !$0.contains(#"client.waitForLine("cut""#) } == [])
    }
}

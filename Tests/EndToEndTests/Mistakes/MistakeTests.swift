import FoundationEssentials
import TestSupport
import Testing

/// Wrong command lines, one per row of `mistakes.tsv`: each says what is wrong, and its `try:` line helps.
@Suite(.scratchFolder) struct MistakeTests {
    private let scratch = ScratchFolder.current

    /// A row of the table.
    struct Mistake: Sendable {
        let command: String
        let status: CInt
        /// A part of what the command prints.
        let sentence: String
        /// The beginning of the `try:` line; empty without one.
        let hint: String
    }

    /// The environment of the commands in one situation.
    private struct Situation: Sendable {
        let scratch: ScratchFolder
        let socket: String

        func run(_ words: [String], within limit: Duration = eventLimit) async throws -> (
            status: TestSupport.ExitStatus?, log: String
        ) {
            let program = try await Program(
                Executable.built("patchbay"),
                words,
                in: scratch,
                environment: [
                    "PATCHBAY_SOCKET": socket, "HOME": scratch.path, "XDG_CONFIG_HOME": scratch.file(".config"),
                    "XDG_STATE_HOME": scratch.file("state-home"),
                ]
            )
            let status = try? await program.exitStatus(within: limit)
            if status == nil { program.kill() }
            return (status, program.log)
        }
    }

    /// Reads the rows of a situation.
    private static func rows(_ situation: String) throws -> [Mistake] {
        let file = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "mistakes.tsv")
        let lines = try String(contentsOf: file, encoding: .utf8).split(separator: "\n")
        let start = try #require(lines.firstIndex { $0 == "[\(situation)]" })
        return try lines[(start + 1)...].prefix { !$0.hasPrefix("[") }.map { line in
            let fields = line.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
            try #require(fields.count == 4, "\(line)")
            return Mistake(
                command: fields[0],
                status: try #require(CInt(fields[1])),
                sentence: fields[2],
                hint: fields[3]
            )
        }
    }

    /// Splits a command line at spaces outside of quotes.
    private static func words(_ line: some StringProtocol) -> [String] {
        var (words, word, quote): ([String], String?, Character?) = ([], nil, nil)
        for character in line {
            if character == quote {
                quote = nil
            } else if quote == nil, "\"'".contains(character) {
                (quote, word) = (character, word ?? "")
            } else if quote == nil, character == " " {
                words += [word].compactMap { $0 }
                word = nil
            } else {
                word = (word ?? "") + String(character)
            }
        }
        return words + [word].compactMap { $0 }
    }

    /// The commands of a hint that can be typed as they are. Words in capital letters stand for names, and a command after
    /// which something is pasted waits for it.
    private static func commands(in hint: String) -> [[String]] {
        guard !hint.contains("paste") else { return [] }
        let quoted = hint.split(separator: "`", omittingEmptySubsequences: false).enumerated()
            .filter { !$0.offset.isMultiple(of: 2) }.map { String($0.element) }
        let ends = [", ", "; ", " lists ", " or "].compactMap { hint.firstRange(of: $0)?.lowerBound }
        let first = String(hint[..<(ends.min() ?? hint.endIndex)])
        return ([first] + quoted).filter { $0.hasPrefix("patchbay ") }.map { Array(words($0).dropFirst()) }.filter {
            words in
            !words.contains { $0.count > 1 && $0.allSatisfy { $0.isUppercase } }
        }
    }

    /// Types the command of each row, and then what its `try:` line says.
    private func check(_ rows: [Mistake], in situation: Situation) async throws {
        var hints: [String: [Mistake]] = [:]
        for batch in stride(from: 0, to: rows.count, by: 6).map({ rows[$0..<min($0 + 6, rows.count)] }) {
            let results = try await withThrowingTaskGroup { group in
                for row in batch {
                    group.addTask { (row, try await situation.run(Self.words(row.command))) }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            for (row, result) in results {
                #expect(result.status == .exited(row.status), "patchbay \(row.command)\n\(result.log)")
                #expect(result.log.contains(row.sentence), "patchbay \(row.command)\n\(result.log)")
                #expect(
                    row.hint.isEmpty || result.log.contains("try: \(row.hint)"),
                    "patchbay \(row.command)\n\(result.log)"
                )
                for words in Self.commands(in: row.hint) {
                    hints[words.joined(separator: "\u{1F}"), default: []].append(row)
                }
            }
        }
        for (line, rows) in hints.sorted(by: { $0.key < $1.key }) {
            let words = line.split(separator: "\u{1F}").map(String.init)
            // A command that runs until it is stopped has understood its arguments.
            let (status, log) = try await situation.run(words, within: .seconds(3))
            let isUnderstood = status != .exited(64) || log.contains("missing expected") || log.contains("specify the")
            #expect(isUnderstood, "patchbay \(words)\n\(log)")
            #expect(!rows.contains { log.contains("error: \($0.sentence)") }, "patchbay \(words)\n\(log)")
        }
    }

    @Test func `a hundred mistakes beside a running broker are named, and the next step helps`() async throws {
        let broker = try await RunningBroker(in: scratch, configuration: "[api]\ntcp = false\n")
        let port = try FreePorts.take()[0]
        _ = try await broker.ask("add", "Lab", "127.0.0.1:\(port)")
        _ = try await broker.forward("tcp:0", "--endpoint", "lab")
        let rows = try Self.rows("a broker without phones, and the endpoint lab, whose app does not run")

        #expect(rows.count >= 100)
        try await check(rows, in: Situation(scratch: scratch, socket: broker.socket))
    }

    @Test func `without a broker each command says how to start it`() async throws {
        try await check(try Self.rows("no broker"), in: Situation(scratch: scratch, socket: scratch.file("none.sock")))
    }

    @Test func `a broker that cannot start is explained by each command`() async throws {
        try scratch.makeFolder(".config/patchbay")
        try scratch.write("[broker]\nlog_level = debug\n", to: ".config/patchbay/patchbay.toml")
        let rows = try Self.rows("no broker, and a configuration without quotes")

        try await check(rows, in: Situation(scratch: scratch, socket: scratch.file("none.sock")))
    }
}

import TestSupport

/// Continuous calls of an app through a tunnel, with their outcomes (`calls.py`).
final class Calls {
    /// One call with its begin and end.
    struct Call: Sendable {
        /// The stages of the test in which the call began and ended.
        let began: Int
        let ended: Int
        /// The version in the app's response, `reset`, `hangs`, or the error.
        let outcome: String
        let milliseconds: Int

        init?(_ line: String) {
            let words = line.split(separator: " ")
            guard words.count == 5, words[0] == "call", let began = Int(words[1]), let ended = Int(words[2]),
                let milliseconds = Int(words[4])
            else { return nil }
            (self.began, self.ended, self.milliseconds) = (began, ended, milliseconds)
            outcome = String(words[3])
        }
    }

    private let program: Program
    private var stage = 0

    /// Starts calls to the tunnel's port on this host.
    init(on host: AvahiHost, port: UInt16) async throws {
        let script = String(#filePath.dropLast("Calls.swift".count)) + "calls.py"
        program = try await host.start("python3", [script, "\(port)"], input: .pipe)
    }

    var all: [Call] { program.output.compactMap(Call.init) }

    /// Assigns later calls to the next stage.
    func nextStage() async throws {
        stage += 1
        try await say("stage", expecting: "stage \(stage)")
    }

    /// Waits until `count` calls of the current stage have ended.
    func count(_ count: Int) async throws {
        let stage = stage
        try await eventually("\(count) calls in stage \(stage)") { all.count { $0.began == stage } >= count }
    }

    /// Starts a call and sends half of the request.
    func open(_ name: String) async throws { try await say("open \(name)", expecting: "\(name) is open") }

    /// Sends one more byte of the request.
    func more(_ name: String) async throws { try await say("more \(name)", expecting: "\(name) sent more") }

    /// Sends the rest of the request and returns the outcome.
    func end(_ name: String) async throws -> String { try await outcome("end \(name)", of: name) }

    /// Waits for the outcome without sending more.
    func hear(_ name: String) async throws -> String { try await outcome("hear \(name)", of: name) }

    /// Returns when every call has ended.
    func stop() async throws {
        program.closeInput()
        try await program.waitForLine("done")
    }

    private func outcome(_ word: String, of name: String) async throws -> String {
        let line = try await say(word, expecting: "\(name) ended: ")
        return String(line.dropFirst("\(name) ended: ".count))
    }

    @discardableResult
    private func say(_ word: String, expecting answer: String) async throws -> String {
        let seen = program.transcript.soFar.count
        try program.write("\(word)\n")
        return try await program.waitForLine(answer, from: seen)
    }
}

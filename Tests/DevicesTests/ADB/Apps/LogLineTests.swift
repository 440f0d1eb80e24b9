import Model
import Testing

@testable import Devices

@Suite struct LogLineTests {
    private static let token = String(repeating: "0123456789abcdef", count: 4)
    private static let session = "http://127.0.0.1:45123/?appreveal_session_token=\(token)"

    private func line(_ text: String, tag: String = "AppReveal") -> LogLine? {
        LogLine(Array("11-26 10:00:00.000 10234  1234  1250 I \(tag): \(text)".utf8))
    }

    @Test func `a line has its user, process, tag and text`() throws {
        let line = try #require(self.line("a: b", tag: "flutter "))

        #expect((line.user, line.processID) == (10_234, 1_234))
        #expect(String(decoding: line.tag, as: UTF8.self) == "flutter")
        #expect(String(decoding: line.text, as: UTF8.self) == "a: b")
    }

    @Test(arguments: [
        "", "--------- beginning of main", "11-26 10:00:00.000  1234  1250 I AppReveal: no user",
        "11-26 10:00:00.000  root  1234  1250 I AppReveal: a name", "11-26 10:00:00.000 10234 1234 1250 I AppReveal",
        "11-26 10:00:00.000 99999999999 1234 1250 I AppReveal: x", "11-26 10:00:00.000 -1 1234 1250 I AppReveal: x",
    ])
    func `a line without a user's number is no line`(text: String) {
        #expect(LogLine(Array(text.utf8)) == nil)
    }

    @Test(arguments: ["Session URL: \(session)", "start ignored; already running at \(session)", "\(session) (copied)"])
    func `AppReveal's session URL has a port and a token`(text: String) throws {
        let found = try #require(line(text)?.announcement)

        #expect((found.kind, found.port, found.processID) == (.appreveal, 45_123, 1_234))
        #expect(found.reveal() == Self.token)
        #expect(!"\(found) \(String(reflecting: found))".contains(Self.token))
    }

    @Test(arguments: [
        "Session URL: http://192.168.1.2:45123/?appreveal_session_token=\(token)",
        "Session URL: http://127.0.0.1:0/?appreveal_session_token=\(token)",
        "Session URL: http://127.0.0.1:70000/?appreveal_session_token=\(token)",
        "Session URL: http://127.0.0.1:/?appreveal_session_token=\(token)",
        "Session URL: http://127.0.0.1:45123@evil/?appreveal_session_token=\(token)",
        "Session URL: http://127.0.0.1:45123/?appreveal_session_token=\(token)0",
        "Session URL: http://127.0.0.1:45123/?appreveal_session_token=\(token.dropLast())g",
        "Session URL: http://127.0.0.1:45123/?appreveal_session_token=",
        "https://127.0.0.1:45123/?appreveal_session_token=\(token)", "Session URL: http://", "",
    ])
    func `another text is no session URL`(text: String) {
        #expect(line(text)?.announcement == nil)
    }

    @Test func `Flutter's line has the port and the code of the VM service`() throws {
        let text = "The Dart VM service is listening on http://127.0.0.1:41321/EMYU73JbR-A=/"
        let found = try #require(line(text, tag: "flutter ")?.announcement)

        #expect((found.kind, found.port) == (.dartVM, 41_321) && found.reveal() == "EMYU73JbR-A=")
        #expect(line("http://127.0.0.1:41321/EMYU73JbR-A=/", tag: "flutter ")?.announcement == nil)
        #expect(
            line("The Dart VM service is listening on http://127.0.0.1:41321/", tag: "flutter ")?.announcement == nil
        )
        #expect(line(text, tag: "Flutter")?.announcement == nil)
    }

    @Test(arguments: [1, 2, 7, 100_000])
    func `lines are whole in any parts, and long ones cost no memory`(count: Int) {
        let long = String(repeating: "x", count: LogLineDecoder.limit + 1)
        let bytes = Array("one\n\(long)\ntwo\n\nthree".utf8)
        var decoder = LogLineDecoder()
        let lines = stride(from: 0, to: bytes.count, by: count).flatMap { start in
            decoder.read(Array(bytes[start..<min(start + count, bytes.count)]))
        }

        #expect(lines.map { String(decoding: $0, as: UTF8.self) } == ["one", "two", ""])
    }

    @Test func `a log is read at its rate after a first amount`() {
        var budget = LogBudget()

        #expect(budget.pause(after: LogBudget.burst, at: .zero) == .zero)
        let pause = budget.pause(after: LogBudget.rate, at: .zero)
        #expect(pause > .milliseconds(990) && pause < .milliseconds(1_010))
        #expect(budget.pause(after: 1_000, at: pause) < .milliseconds(10))
        #expect(budget.pause(after: LogBudget.burst, at: .seconds(60)) == .zero)
    }
}

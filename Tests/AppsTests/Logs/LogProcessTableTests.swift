import Model
import Testing

@testable import Apps

@Suite struct LogProcessTableTests {
    private static func line(_ process: UInt32) -> RawPhoneLogLine {
        RawPhoneLogLine(time: "", user: "10234", processID: process, threadID: 1, level: "I", tag: "Shop", text: "x")
    }

    /// Returns the processes of lines, and 0 for each note.
    private static func processes(_ events: [PhoneLogEvent<RawPhoneLogLine>]) -> [UInt32] {
        events.map { if case .line(let line) = $0 { line.processID } else { 0 } }
    }

    @Test func `each process after those of the past lines has one note, before its first line`() {
        var table = LogProcessTable(of: SanitizedText("com.example.shop"), after: [Self.line(1)])

        let events = table.noting([1, 2, 2, 1, 3].map { .line(Self.line($0)) })
        #expect(Self.processes(events) == [1, 0, 2, 2, 1, 0, 3])
        #expect(events[1] == .note("com.example.shop has started as process 2"))
        #expect(Self.processes(table.noting([.lost(1), .line(Self.line(3))])) == [0, 3])
    }

    @Test func `the first process of a reader without past lines is not new`() {
        var table = LogProcessTable(of: SanitizedText("com.example.shop"), after: [])

        #expect(Self.processes(table.noting([.line(Self.line(1)), .line(Self.line(2))])) == [1, 0, 2])
    }

    @Test func `an app that starts without end has a limited number of notes`() {
        var table = LogProcessTable(of: SanitizedText("com.example.shop"), after: [])

        let events = table.noting((1...1_000).map { .line(Self.line($0)) })
        #expect(events.count == 1_063)
    }
}

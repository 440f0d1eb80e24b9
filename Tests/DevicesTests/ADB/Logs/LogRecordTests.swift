import Model
import Testing

@testable import Devices

@Suite struct LogRecordTests {
    private func record(_ text: String) -> LogRecord? { LogRecord(Array(text.utf8)) }

    @Test func `a line has all its values, also of a system user`() throws {
        let line = try #require(record("11-26 10:00:00.123  root   123   456 E my tag  : a: b \u{E4}")).line

        #expect((line.time, line.user, line.level) == ("11-26 10:00:00.123", "root", "E"))
        #expect((line.processID, line.threadID) == (123, 456))
        #expect((line.tag, line.text) == ("my tag", "a: b \u{E4}"))
        #expect(record("11-26 10:00:00.123 10234   123   456 I T: x")?.userID == 10_234)
        #expect(record("11-26 10:00:00.123 root   123   456 I T: x")?.userID == nil)
    }

    @Test(arguments: [
        "", "--------- beginning of main", "11-26 10:00:00.123 10234 1 1 I no colon", "x 10:00:00.123 10234 1 1 I T: x",
        "11-26 '$(reboot)' 10234 1 1 I T: x", "11-26  10:00:00.123 10234 1 1 I T: x",
        "2026-11-26 10:00:00.123 10234 1 1 I T: x", "11-26 10:00:00.123 10234 1 1 INFO T: x",
    ])
    func `another text is no line`(text: String) { #expect(record(text) == nil) }

    @Test func `bytes that are not UTF-8 are replaced`() throws {
        let record = try #require(LogRecord(Array("11-26 10:00:00.123 10234 1 1 I T: a".utf8) + [0xFF]))
        #expect(record.line.text == "a\u{FFFD}")
    }

    @Test(arguments: [1, 7, 100_000]) func `a long line is cut, and costs no memory`(count: Int) {
        let bytes = Array("one\n\(String(repeating: "x", count: 1 << 20))\ntwo\n".utf8)
        var decoder = LogLineDecoder(cut: 10)
        let lines = stride(from: 0, to: bytes.count, by: count).flatMap { start in
            decoder.read(Array(bytes[start..<min(start + count, bytes.count)]))
        }

        #expect(lines.map { String(decoding: $0, as: UTF8.self) } == ["one", "xxxxxxxxxx", "two"])
    }

    @Test func `a tail has the newest lines, within a number and a size`() throws {
        func tail(limit: Int, byteLimit: Int = 1 << 20) throws -> PhoneLogPast {
            let tail = LogTail(limit: limit, byteLimit: byteLimit)
            for number in 0..<1_000 {
                let time = "11-26 10:00:0\(number / 100).000"
                tail.append([try #require(record("\(time) 10234 1 1 I T: \(number)"))])
            }
            return tail.past
        }

        #expect(try tail(limit: 3).lines.map(\.text) == ["997", "998", "999"])
        #expect(try tail(limit: 0).lines.isEmpty)
        #expect(String(decoding: try tail(limit: 0).position.time, as: UTF8.self) == "11-26 10:00:09.000")
        #expect(try tail(limit: 5_000).lines.count == 1_000)
        #expect((5...10).contains(try tail(limit: 500, byteLimit: 400).lines.count))
        #expect(LogTail(limit: 3, byteLimit: 10).past.position.time.isEmpty)
    }

    @Test func `a package has its user, and a longer name has another`() {
        let output = Array("package:com.example.shop.test uid:10300\npackage:com.example.shop uid:10234\n".utf8)

        #expect(AppPortTable.user(of: "com.example.shop", in: output) == 10_234)
        #expect(AppPortTable.user(of: "com.example", in: output) == nil)
        #expect(AppPortTable.userCommand(of: "com.example.shop") == "cmd package list packages -U com.example.shop")
        for name in ["", "a b", "a;reboot", "$(x)"] { #expect(AppPortTable.userCommand(of: name) == nil) }
    }
}

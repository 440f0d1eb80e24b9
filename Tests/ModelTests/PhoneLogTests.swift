import FoundationEssentials
import Model
import Testing

@Suite struct PhoneLogTests {
    private func raw(_ text: String, tag: String = "Shop") -> RawPhoneLogLine {
        RawPhoneLogLine(
            time: "11-26 10:00:00.000",
            user: "10234",
            processID: 47,
            threadID: 48,
            level: "I",
            tag: tag,
            text: text
        )
    }

    private func line(_ text: String, tag: String = "Shop") -> PhoneLogLine {
        PhoneLogLine(raw(text, tag: tag), by: SecretRedactor(known: [Array("s3cret-of-the-app".utf8)]))
    }

    @Test func `a line is safe to print, and has no secrets`() {
        #expect(line("a\tb\u{1B}[2J\u{202E}\r").text.text == "a    b\u{FFFD}[2J\u{FFFD}\u{FFFD}")
        #expect(line("it is s3cret-of-the-app now").text.text == "it is [removed] now")
        #expect(line("x", tag: "s3cret-of-the-app").tag.text == "[removed]")
        #expect(line("x").description == "11-26 10:00:00.000    47 I Shop: x")
    }

    @Test func `a long line is cut at 8 KiB, and a secret across the cut is removed`() {
        let long = line(String(repeating: "x", count: RawPhoneLogLine.textLimit - 8) + "s3cret-of-the-app").text.text

        #expect(long.utf8.count <= RawPhoneLogLine.textLimit && !long.contains("s3cret"))
    }

    @Test func `a line has its members in JSON`() throws {
        let json = try JSON(parsing: JSONCoding.encoder().encode(line("x")))

        #expect(
            json == [
                "level": "I", "pid": 47, "tag": "Shop", "text": "x", "tid": 48, "time": "11-26 10:00:00.000",
                "uid": "10234",
            ]
        )
    }

    @Test func `lines of the last millisecond that come again are recognised, and new equal ones are not lost`() {
        var position = PhoneLogPosition()
        func read(_ text: String) -> Bool { position.read(Array(text.utf8), time: 0..<2) }

        #expect(["01 a", "02 b", "02 b", "02 c"].allSatisfy(read))
        #expect(position.time == Array("02".utf8))
        position.resume()
        #expect(["02 b", "02 b", "02 c"].allSatisfy { !read($0) })
        #expect(read("02 b") && read("03 d"))
        position.resume()
        #expect(!read("03 d") && read("04 d") && read("03 d"))
    }
}

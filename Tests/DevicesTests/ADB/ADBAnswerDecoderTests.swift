import Model
import Testing

@testable import Devices

@Suite struct ADBAnswerDecoderTests {
    /// Gives a decoder one byte at a time, and never more than it asks for.
    private func answer(_ text: String) throws -> (answer: ADBAnswerDecoder.Answer?, rest: String) {
        var decoder = ADBAnswerDecoder()
        var bytes = Array(text.utf8)[...]
        while true {
            if let answer = try decoder.next() { return (answer, String(decoding: bytes, as: UTF8.self)) }
            guard !bytes.isEmpty else { return (nil, "") }
            let count = min(decoder.bytesNeeded, bytes.count)
            decoder.append(bytes.prefix(count))
            bytes = bytes.dropFirst(count)
        }
    }

    @Test func `a request has the length of its text in four digits`() throws {
        let id = try #require(ADBTransportID("12"))

        #expect(ADBRequest.trackDevices.encoded == Array("0014host:track-devices-l".utf8))
        #expect(ADBRequest.transport(id).encoded == Array("0014host:transport-id:12".utf8))
        #expect(ADBRequest.shell("getprop").encoded == Array("000dshell:getprop".utf8))
    }

    @Test func `no byte after the answer is read`() throws {
        #expect(try answer("OKAYSSH-2.0").rest == "SSH-2.0")
        #expect(try answer("FAIL0006closedrest") == (.failed(SanitizedText("closed")), "rest"))
    }

    @Test(arguments: ["", "OKA", "FAIL", "FAIL00", "FAIL0006clos"])
    func `an incomplete answer is no answer yet`(text: String) throws {
        #expect(try answer(text).answer == nil)
    }

    @Test(arguments: ["okay", "HTTP/1.1 400", "FAIL-001x", "FAIL 12 x", "\u{0}\u{0}\u{0}\u{0}"])
    func `other bytes are no answer`(text: String) {
        #expect(throws: ADBError.self) { try answer(text) }
    }

    @Test func `a reason has one line without terminal escapes`() throws {
        let reason = "device unauthorized.\n\u{1B}[2JThis adb server"
        let length = "0" + String(reason.utf8.count, radix: 16).uppercased()

        #expect(
            try answer("FAIL0" + length + reason).answer
                == .failed(SanitizedText("device unauthorized. \u{FFFD}[2JThis adb server"))
        )
    }

    @Test func `texts follow each other in any split`() throws {
        var decoder = ADBTextDecoder()
        var texts: [String] = []
        for byte in "0003abc00000001d".utf8 {
            decoder.append([byte])
            while let text = try decoder.next() { texts.append(String(decoding: text, as: UTF8.self)) }
        }

        #expect(texts == ["abc", "", "d"])
    }

    @Test func `nothing is read after a false length`() {
        var decoder = ADBTextDecoder()
        decoder.append(Array("zzzz0001a".utf8))

        for _ in 0..<2 { #expect(throws: ADBError.self) { try decoder.next() } }
        decoder.append(Array("0001a".utf8))
        #expect(throws: ADBError.self) { try decoder.next() }
    }
}

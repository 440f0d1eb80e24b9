import TestSupport
import Testing

@testable import Devices

@Suite struct UsbmuxFrameDecoderTests {
    private static func header(_ length: UInt32, _ version: UInt32, _ kind: UInt32) -> [UInt8] {
        UsbmuxHeader(length: length, version: version, kind: kind, tag: 1).encoded
    }

    /// All decoded messages, and whether decoding ended in an error.
    private static func decode(_ chunks: [ArraySlice<UInt8>]) -> (messages: [UsbmuxMessage], error: UsbmuxError?) {
        var decoder = UsbmuxFrameDecoder()
        var messages: [UsbmuxMessage] = []
        for chunk in chunks {
            decoder.append(chunk)
            do {
                while let message = try decoder.next() { messages.append(message) }
            } catch { return (messages, error) }
        }
        return (messages, nil)
    }

    @Test func `the header is four little-endian words`() {
        let bytes = UsbmuxMessage(tag: 0x0102_0304, body: .propertyList([0xAA])).encoded

        #expect(bytes == [17, 0, 0, 0, 1, 0, 0, 0, 8, 0, 0, 0, 4, 3, 2, 1, 0xAA])
    }

    @Test func `messages are complete for any split of the bytes`() {
        let stream =
            MuxMessage.result(0) + MuxMessage.propertyList(MuxMessage.detached(3), tag: 0) + MuxMessage.result(3)

        let bytewise = Self.decode(stream.indices.map { stream[$0...$0] })

        #expect(bytewise.messages.count == 3)
        #expect(bytewise.messages == Self.decode([stream[...]]).messages)
        #expect(bytewise.error == nil)
    }

    @Test func `reading bytesNeeded bytes consumes nothing of the stream after the reply`() throws {
        let stream = MuxMessage.result(0) + Array("SSH-2.0".utf8)
        var rest = stream[...]
        var decoder = UsbmuxFrameDecoder()

        while try decoder.next() == nil {
            let count = decoder.bytesNeeded
            decoder.append(rest.prefix(count))
            rest = rest.dropFirst(count)
        }

        #expect(Array(rest) == Array("SSH-2.0".utf8))
    }

    @Test func `the binary rejection of a version is decoded`() throws {
        var decoder = UsbmuxFrameDecoder()

        decoder.append(UsbmuxMessage(tag: 9, body: .result(.badVersion)).encoded)

        #expect(try decoder.next() == UsbmuxMessage(tag: 9, body: .result(.badVersion)))
    }

    @Test(arguments: [
        header(0, 1, 8), header(15, 1, 8), header(.max, 1, 8), header((1 << 20) + 1, 1, 8), header(100, 2, 8),
        header(100, 0, 8), header(100, 1, 1), header(21, 0, 1), header(16, 0, 1), Array("HTTP/1.1 400 Bad".utf8),
        [UInt8](repeating: 0, count: 16), [UInt8](repeating: 0xFF, count: 16),
    ])
    func `an invalid header ends the connection before its body`(bytes: [UInt8]) {
        var decoder = UsbmuxFrameDecoder()
        decoder.append(bytes)
        let first = #expect(throws: UsbmuxError.self) { try decoder.next() }

        decoder.append(MuxMessage.result(0))
        let second = #expect(throws: UsbmuxError.self) { try decoder.next() }

        #expect(first == second)
        #expect(decoder.bytesNeeded == 1)
    }

    @Test func `a message of the maximum length is accepted`() throws {
        var decoder = UsbmuxFrameDecoder()
        decoder.append(Self.header(UsbmuxFrameDecoder.lengthLimit, 1, 8))
        #expect(try decoder.next() == nil)

        decoder.append([UInt8](repeating: 0x20, count: decoder.bytesNeeded))

        #expect(try decoder.next() != nil)
    }

    @Test(arguments: 1...40 as ClosedRange<UInt64>)
    func `random damage never crashes, and the result does not depend on how bytes arrive`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let sound = MuxMessage.propertyList(
            MuxMessage.list([MuxMessage.attached(1, Phones.one), MuxMessage.attached(2, Phones.two)])
        )
        for _ in 0..<50 {
            var stream =
                sound + MuxMessage.result(0) + MuxMessage.propertyList(MuxMessage.attached(7, Phones.one), tag: 0)
            for _ in 0..<Int.random(in: 0...6, using: &random) {
                let place = Int.random(in: 0..<stream.count, using: &random)
                switch Int.random(in: 0..<4, using: &random) {
                case 0: stream[place] = .random(in: 0...255, using: &random)
                case 1: stream.removeSubrange(place..<min(stream.count, place + 40))
                case 2: stream.insert(contentsOf: Array("<dict>".utf8), at: place)
                default: stream[place] ^= 1 << UInt8.random(in: 0..<8, using: &random)
                }
            }
            var chunks: [ArraySlice<UInt8>] = []
            var rest = stream[...]
            while !rest.isEmpty {
                let size = Int.random(in: 1...200, using: &random)
                chunks.append(rest.prefix(size))
                rest = rest.dropFirst(size)
            }

            let (whole, split) = (Self.decode([stream[...]]), Self.decode(chunks))

            #expect(whole.messages == split.messages)
            #expect(whole.error == split.error)
            // Invalid data must be an error. The test only requires that decoding returns.
            for message in whole.messages { _ = try? UsbmuxReply(message) }
        }
    }

    @Test(arguments: 1...20 as ClosedRange<UInt64>)
    func `random bytes are rejected`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let noise = (0..<4096).map { _ in UInt8.random(in: 0...255, using: &random) }

        #expect(Self.decode([noise[...]]).error != nil)
    }
}

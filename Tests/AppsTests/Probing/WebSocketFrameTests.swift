import Testing

@testable import Apps

@Suite struct WebSocketFrameTests {
    private static func frames(_ bytes: [UInt8], pieces: Int = .max) throws -> [WebSocketFrame] {
        var (decoder, frames, rest) = (WebSocketDecoder(limit: 300), [WebSocketFrame](), bytes[...])
        while !rest.isEmpty {
            decoder.append(rest.prefix(pieces))
            rest = rest.dropFirst(pieces)
            while let frame = try decoder.next() { frames.append(frame) }
        }
        return frames
    }

    @Test(arguments: [1, 3, Int.max]) func `frames are split at any chunk size`(pieces: Int) throws {
        let long = [UInt8](repeating: 7, count: 300)

        let frames = try Self.frames([0x01, 0x02, 65, 66, 0x89, 0x00, 0x80, 126, 0x01, 0x2C] + long, pieces: pieces)

        #expect(
            frames == [
                WebSocketFrame(isFinal: false, opcode: .text, payload: [65, 66]),
                WebSocketFrame(opcode: .ping, payload: []), WebSocketFrame(opcode: .continuation, payload: long),
            ]
        )
    }

    @Test func `the bits for extensions, unknown opcodes and masks are reported`() throws {
        #expect(try Self.frames([0xC1, 0]) == [WebSocketFrame(reserved: 4, opcode: .text, payload: [])])
        #expect(try Self.frames([0x83, 0]) == [WebSocketFrame(opcode: nil, payload: [])])
        #expect(try Self.frames([0x82, 0x80, 1, 2, 3, 4]).first?.isMasked == true)
    }

    @Test(arguments: [[0x81, 126, 0x01, 0x2D], [0x81, 127, 0xFF, 0, 0, 0, 0, 0, 0, 0]] as [[UInt8]])
    func `a frame above the limit is an error before its content arrives`(bytes: [UInt8]) {
        #expect(throws: ExchangeError.tooLarge(limit: 300)) { try Self.frames(bytes) }
    }

    @Test(arguments: [[0x89, 126, 0, 126], [0x09, 0]] as [[UInt8]])
    func `a control frame is whole and short`(bytes: [UInt8]) {
        #expect(throws: ExchangeError.self) { try Self.frames(bytes) }
    }

    @Test(arguments: [0, 5, 125, 126, 300]) func `a masked frame has its content`(size: Int) throws {
        let payload = (0..<size).map { UInt8(truncatingIfNeeded: $0) }
        let bytes = WebSocketFrame.masked(.text, payload)
        let start = bytes.count - size

        let frame = try #require(try Self.frames(bytes).first)

        #expect(frame.isMasked && frame.isFinal && frame.payload.count == size)
        #expect(zip(0..., bytes[start...]).map { $1 ^ bytes[start - 4 + $0 % 4] } == payload)
    }
}

import TestSupport
import Testing

@testable import Apps

@Suite struct DebugFrameDecoderTests {
    /// Returns all frames of a stream that arrives in chunks.
    private static func frames(of chunks: [[UInt8]], _ decoder: inout DebugFrameDecoder) throws -> [String] {
        var frames: [String] = []
        for chunk in chunks {
            decoder.append(chunk)
            while let content = try decoder.next() { frames.append(String(decoding: content, as: UTF8.self)) }
        }
        return frames
    }

    /// Returns the error of a stream.
    private static func failure(of bytes: [UInt8], limit: Int = DebugFrameDecoder.contentLimit) -> DebugLinkError? {
        var decoder = DebugFrameDecoder(limit: limit)
        do {
            _ = try frames(of: [bytes], &decoder)
            return nil
        } catch { return error as? DebugLinkError }
    }

    @Test(arguments: DebugFraming.allCases)
    func `frames may be cut at every byte`(framing: DebugFraming) throws {
        // 256 bytes: the low byte of the length is 0, so both framings begin with CE 00.
        let contents = [#"{"a":"\#(String(repeating: "x", count: 248))"}"#, "{}", " [1]", "\n7", #""text""#]
        #expect(contents[0].utf8.count == 256)
        let stream = contents.flatMap { framing.frame(Array($0.utf8)) }

        for cut in 0...stream.count {
            var decoder = DebugFrameDecoder()
            let chunks = [Array(stream[..<cut]), Array(stream[cut...])]
            #expect(try Self.frames(of: chunks, &decoder) == contents, "cut at \(cut)")
            #expect(decoder.framing == framing)
            #expect(decoder.incompleteBytes == 0)
        }
        var decoder = DebugFrameDecoder()
        #expect(try Self.frames(of: stream.map { [$0] }, &decoder) == contents)
    }

    @Test func `a frame has the bytes of its framing`() throws {
        #expect(DebugFraming.objcio.frame(Array("{}".utf8)) == [0xCE, 2, 0, 0, 0, 0x7B, 0x7D])
        #expect(DebugFraming.jsonOverTCP.frame(Array("{}".utf8)) == [0xCE, 0, 2, 0, 0, 0, 0x7B, 0x7D])
    }

    @Test(arguments: [256, 512, 65_536, 1_048_576])
    func `a length with a low byte of 0 does not hide the framing`(length: Int) throws {
        for framing in DebugFraming.allCases {
            var decoder = DebugFrameDecoder()
            let frame = framing.frame([UInt8](repeating: 0x20, count: length))
            decoder.append(Array(frame.dropLast()))
            #expect(try decoder.next() == nil)
            #expect(decoder.framing == framing)
            decoder.append([0x20])
            #expect(try decoder.next()?.count == length)
        }
    }

    @Test func `the largest length is accepted in both framings`() throws {
        for (bytes, framing) in [
            ([0xCE, 0, 0, 0, 4, 0x7B], DebugFraming.objcio), ([0xCE, 0, 0, 0, 0, 4, 0x7B], .jsonOverTCP),
        ] as [([UInt8], DebugFraming)] {
            var decoder = DebugFrameDecoder()
            decoder.append(bytes)
            #expect(try decoder.next() == nil)
            #expect(decoder.framing == framing)
        }
    }

    @Test(arguments: [
        ([0x47], DebugLinkError.wrongSignature(0x47)),
        ([0xCE, 0xFF, 0xFF, 0xFF, 0xFF, 0x7B], .invalidLength(-1, limit: 100)),
        ([0xCE, 1, 0, 0, 0x80, 0x7B], .invalidLength(-2_147_483_647, limit: 100)),
        ([0xCE, 101, 0, 0, 0, 0x7B], .invalidLength(101, limit: 100)),
        ([0xCE, 0, 0, 0, 0, 0x7B], .invalidLength(0, limit: 100)),
        ([0xCE, 0, 0, 0, 0, 0], .invalidLength(0, limit: 100)),
        ([0xCE, 0, 101, 0, 0, 0], .invalidLength(101, limit: 100)),
        ([0xCE, 0, 0xFF, 0xFF, 0xFF, 0xFF], .invalidLength(4_294_967_295, limit: 100)),
        ([0xCE, 2, 0, 0, 0, 0x01], .notJSON(0x01)),
        ([0xCE, 0, 2, 0, 0, 0, 0x01], .notJSON(0x01)),
        ([0xCE, 2, 0, 0, 0, 0x7B, 0x7D, 0xCF], .wrongSignature(0xCF)),
        ([0xCE, 0, 2, 0, 0, 0, 0x7B, 0x7D, 0xCE, 2, 0, 0, 0, 0x7B], .wrongSignature(2)),
    ]) func `a false frame is a named error`(bytes: [UInt8], error: DebugLinkError) {
        #expect(Self.failure(of: bytes, limit: 100) == error)
    }

    @Test(
        arguments: [[0xCE, 0, 0, 1, 0x2C, 0x7B], [0xCE, 0, 0, 0, 1, 0x2C, 0x7B], [0xCE, 0, 0, 1, 0xFF, 0x7B]]
            as [[UInt8]]
    )
    func `a length in the other byte order is named, and not the size of pictures`(bytes: [UInt8]) throws {
        var decoder = DebugFrameDecoder()
        decoder.append(bytes)

        let error = try #require(throws: DebugLinkError.self) { try decoder.next() }

        let length = bytes[4] == 0xFF ? 511 : 300
        #expect(error.description.contains("or \(length) in the other byte order; send the length in little-endian"))
        #expect(!error.description.contains("pictures"))
    }

    @Test func `no frame follows an error`() throws {
        var decoder = DebugFrameDecoder()
        decoder.append([0x47])
        #expect(throws: DebugLinkError.wrongSignature(0x47)) { try decoder.next() }

        decoder.append(DebugFraming.objcio.frame(Array("{}".utf8)))

        #expect(throws: DebugLinkError.wrongSignature(0x47)) { try decoder.next() }
        #expect(decoder.incompleteBytes == 0)
    }

    @Test func `memory follows the received bytes instead of the announced length`() throws {
        var decoder = DebugFrameDecoder()
        decoder.append([0xCE, 0, 0, 0, 4, 0x7B])

        #expect(try decoder.next() == nil)

        #expect(decoder.incompleteBytes == 1)
        #expect(decoder.reservedBytes < 1_024)
        decoder.append([UInt8](repeating: 0x20, count: 100_000))
        #expect(try decoder.next() == nil)
        #expect(decoder.reservedBytes < 300_000)
    }

    @Test func `garbage ends in a named error within the memory of one frame`() throws {
        var random = SeededGenerator(seed: 13)
        for round in 0..<400 {
            var decoder = DebugFrameDecoder(limit: 10_000)
            var failure: (any Error)?
            var received = 0
            while failure == nil, received < 40_000_000 {
                var chunk = (0..<512).map { _ in UInt8.random(in: .min ... .max, using: &random) }
                // Three of four begin like a frame: the first byte, a short length, the begin of JSON.
                if received == 0, round % 4 > 0 { chunk[0] = 0xCE }
                if received == 0, round % 4 > 1 { chunk.replaceSubrange(2...4, with: [UInt8(round % 40), 0, 0]) }
                if received == 0, round % 4 > 2 { chunk[5] = 0x7B }
                received += chunk.count
                decoder.append(chunk)
                do { while try decoder.next() != nil {} } catch { failure = error }
                #expect(decoder.incompleteBytes <= 10_000)
            }
            #expect(failure is DebugLinkError, "round \(round)")
        }
    }
}

import Testing

@testable import Apps

/// The compressed texts are from Python 3.11: `gzip.compress`, `zlib.compress` and `zlib.compressobj(wbits=-15)`.
@Suite struct InflaterTests {
    private static let text = #"{"a":"hello hello hello"}"#
    private static let gzip: [UInt8] = [
        0x1F, 0x8B, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0xFF, 0xAB, 0x56, 0x4A, 0x54, 0xB2, 0x52,
        0xCA, 0x48, 0xCD, 0xC9, 0xC9, 0x57, 0x40, 0x22, 0x95, 0x6A, 0x01, 0x43, 0xB0, 0x5C, 0xB9, 0x19,
        0x00, 0x00, 0x00,
    ]
    private static let zlib: [UInt8] = [
        0x78, 0x9C, 0xAB, 0x56, 0x4A, 0x54, 0xB2, 0x52, 0xCA, 0x48, 0xCD, 0xC9, 0xC9, 0x57, 0x40, 0x22,
        0x95, 0x6A, 0x01, 0x6A, 0x2F, 0x08, 0x98,
    ]
    private static let bare: [UInt8] = [
        0xAB, 0x56, 0x4A, 0x54, 0xB2, 0x52, 0xCA, 0x48, 0xCD, 0xC9, 0xC9, 0x57, 0x40, 0x22, 0x95, 0x6A,
        0x01,
    ]
    private static let bomb: [UInt8] =
        [0x78, 0xDA, 0xED, 0xC1, 0x31, 0x01, 0x00, 0x00, 0x00, 0xC2, 0xA0, 0xF5, 0x4F, 0x6D, 0x08, 0x5F, 0xA0]
        + [UInt8](repeating: 0x00, count: 1016) + [0x3E, 0x03, 0x00, 0xF0, 0x00, 0x01]

    private static func decode(_ bytes: [UInt8], as coding: Inflater.Coding, chunk: Int = .max) throws -> [UInt8] {
        let inflater = Inflater(coding)
        var decoded: [UInt8] = []
        var rest = bytes[...]
        while !rest.isEmpty {
            inflater.append(rest.prefix(chunk))
            rest = rest.dropFirst(chunk)
            while let part = try inflater.next() {
                #expect(part.count <= Inflater.step)
                decoded += part
            }
        }
        return decoded + (try inflater.finish() ?? [])
    }

    @Test(arguments: [1, 2, 7, Int.max]) func `gzip, zlib and bare deflate data are decoded in chunks of any size`(
        chunk: Int
    ) throws {
        let text = Array(Self.text.utf8)
        #expect(try Self.decode(Self.gzip, as: .gzip, chunk: chunk) == text)
        #expect(try Self.decode(Self.zlib, as: .deflate, chunk: chunk) == text)
        #expect(try Self.decode(Self.bare, as: .deflate, chunk: chunk) == text)
        #expect(try Self.decode(Self.gzip + Self.gzip, as: .gzip, chunk: chunk) == text + text)
    }

    @Test(arguments: ["", "{", #"{"a":1}"#])
    func `a body that is declared as gzip and is not compressed passes unchanged`(_ text: String) throws {
        #expect(try Self.decode(Array(text.utf8), as: .gzip) == Array(text.utf8))
    }

    @Test func `bytes after the end are ignored`() throws {
        #expect(try Self.decode(Self.gzip + [0, 0, 0], as: .gzip) == Array(Self.text.utf8))
    }

    @Test func `a body that is cut off is an error`() {
        #expect(throws: ExchangeError.interrupted) { try Self.decode(Self.gzip.dropLast(1), as: .gzip) }
        #expect(throws: ExchangeError.interrupted) { try Self.decode(Array(Self.zlib.prefix(4)), as: .deflate) }
    }

    @Test func `a damaged body is an error`() {
        var damaged = Self.gzip
        damaged[12] ^= 0xFF
        #expect(throws: ExchangeError.invalid("a body that is no valid gzip or deflate")) {
            try Self.decode(damaged, as: .gzip)
        }
    }

    @Test func `a decompression bomb is decoded in steps that the caller can stop`() throws {
        // 1 MiB of zeros.
        let inflater = Inflater(.deflate)
        inflater.append(Self.bomb[...])
        var steps = 0
        while let part = try inflater.next() {
            #expect(part.count <= Inflater.step)
            steps += 1
        }
        #expect(steps >= 16)
    }
}

import FoundationEssentials
import Model
import TestSupport
import Testing

@testable import AccessControl

@Suite struct TokenTests {
    private static let letters = Base62.letters

    @Test func `a token parses as it was printed and has the documented format`() throws {
        for kind in Token.Kind.allCases {
            let token = Token(random: kind)
            let text = token.reveal()

            #expect(text.wholeMatch(of: /pb[igr]_[0-9A-Za-z]{8}_[0-9A-Za-z]{22,43}_[0-9A-Za-z]{6}/) != nil)
            #expect(text.utf8.count == (kind == .invite ? 42 : 63))
            let read = try Token(text)
            #expect(read.kind == kind && read.id == token.id && read.digest == token.digest)
        }
    }

    @Test func `a token that is printed, dumped or reflected shows no secret`() {
        let token = Token(random: .grant)
        let secret = token.reveal().split(separator: "_")[2]
        var dumped = ""
        dump(token, to: &dumped)

        for text in ["\(token)", String(reflecting: token), String(describing: [token]), dumped, "\([1: token])"] {
            #expect(text.contains(token.id))
            #expect(!text.contains(secret))
        }
    }

    @Test func `every single wrong letter is detected`() {
        var random = SeededGenerator(seed: 1)
        var undetected = 0
        for _ in 0..<20_000 {
            var text = Array(Token(random: .invite).reveal().utf8)
            let index = Int.random(in: text.indices, using: &random)
            let letter = (Self.letters + [UInt8(ascii: "_")]).randomElement(using: &random)
            guard let letter, text[index] != letter else { continue }
            text[index] = letter
            if (try? Token(String(decoding: text, as: UTF8.self))) != nil { undetected += 1 }
        }

        #expect(undetected == 0)
    }

    @Test(arguments: [
        "", "pbi", "pbi_", "pbg_12345678_", String(repeating: "a", count: 10_000_000), "pbi_\0\0\0\0\0\0\0\0_",
        " pbi_00000000_0000000000000000000000_000000", "рbi_00000000_0000000000000000000000_000000",
        "pbi_00000000_0000000000000000000000_000000", "PBI_00000000_0000000000000000000000_000000",
        "pbi__0000000_0000000000000000000000_000000",
    ])
    func `text that is not a token is rejected, and the error does not repeat it`(text: String) {
        let error = #expect(throws: AccessError.notAToken) { try Token(text) }

        #expect(text.isEmpty || error?.description.contains(text) == false)
    }

    @Test func `a truncated, extended or case-changed token is rejected`() {
        let text = Token(random: .invite).reveal()
        for wrong in [String(text.dropLast()), text + "0", text + "\n", text.lowercased(), text.uppercased()]
        where wrong != text { #expect(throws: AccessError.notAToken) { try Token(wrong) } }
    }

    @Test func `the checksum is the standard CRC-32`() { #expect(CRC32.checksum(of: "123456789".utf8) == 0xCBF4_3926) }

    /// 61 degrees of freedom. A fair source exceeds 110 once in 10,000 runs. A source that takes bytes modulo 62
    /// without rejection is far above.
    @Test func `tokens are unique, and their letters are uniformly distributed`() {
        let count = 20_000
        var seen: Set<String> = []
        var letters: [UInt8: Int] = [:]
        for _ in 0..<count {
            let parts = Token(random: .invite).reveal().split(separator: "_")
            seen.insert("\(parts[1])\(parts[2])")
            for letter in parts[1].utf8 { letters[letter, default: 0] += 1 }
            for letter in parts[2].utf8 { letters[letter, default: 0] += 1 }
        }
        let expected = Double(count * 30) / 62
        let chiSquare = letters.values.reduce(0) { $0 + (Double($1) - expected) * (Double($1) - expected) / expected }

        #expect(seen.count == count)
        #expect(letters.count == 62)
        #expect(chiSquare < 130, "chi-square \(chiSquare)")
    }

    @Test func `bytes that would bias the letters are rejected`() {
        #expect((UInt8.min...UInt8.max).filter { Base62.letter(for: $0) == nil } == Array(248...255))
        let counts = Dictionary(grouping: (0..<248).compactMap { Base62.letter(for: $0) }, by: { $0 }).mapValues(
            \.count
        )
        #expect(Set(counts.values) == [4])
    }
}

import FoundationEssentials
import Model
import Testing

@Suite struct KeyPinTests {
    /// RFC 4648, section 10, without the padding.
    @Test(arguments: [
        ("", ""), ("f", "MY"), ("fo", "MZXQ"), ("foo", "MZXW6"), ("foob", "MZXW6YQ"), ("fooba", "MZXW6YTB"),
        ("foobar", "MZXW6YTBOI"),
    ])
    func `base32 agrees with the test vectors of RFC 4648`(bytes: String, text: String) {
        #expect(Base32.encode(bytes.utf8) == text)
        #expect(Base32.decode(text) == Array(bytes.utf8))
    }

    @Test(arguments: ["my", "MY======", "M", "MZX", "MZ", "M1", "M8", "MZXW6YTB ", "MZ\u{301}"])
    func `a text that base32 does not produce is rejected`(text: String) { #expect(Base32.decode(text) == nil) }

    @Test func `a pin survives its text and its JSON`() throws {
        let pin = try #require(KeyPin(digest: (0..<32).map { UInt8($0 * 7 + 1) }))

        #expect(pin.description.count == 52)
        #expect(KeyPin(pin.description) == pin)
        #expect(try JSONDecoder().decode([KeyPin].self, from: JSONEncoder().encode([pin])) == [pin])
    }

    @Test func `pins of other bytes are different`() throws {
        let bytes = [UInt8](repeating: 0x5A, count: 32)
        let pin = try #require(KeyPin(digest: bytes))
        for bit in 0..<256 {
            var other = bytes
            other[bit / 8] ^= 1 << (bit % 8)
            #expect(KeyPin(digest: other) != pin)
        }
    }

    @Test(arguments: [
        "", String(repeating: "A", count: 51), String(repeating: "A", count: 53), String(repeating: "a", count: 52),
        String(repeating: "A", count: 51) + "B", String(repeating: "A", count: 51) + "=",
        String(repeating: "A", count: 10_000_000),
    ])
    func `a text that is no pin is rejected`(text: String) { #expect(KeyPin(text) == nil) }

    @Test(arguments: [0, 31, 33])
    func `a digest of another length is rejected`(count: Int) {
        #expect(KeyPin(digest: [UInt8](repeating: 0, count: count)) == nil)
    }
}

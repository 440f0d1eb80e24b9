import FoundationEssentials
import Model
import Testing
import Transport

@Suite struct SealedTextTests {
    private static let passphrase = "correct horse battery staple"

    @Test func `a sealed text opens with its passphrase only, also after its file was read again`() throws {
        let sealed = try SealedText("the key", with: Self.passphrase)
        let file = try JSONCoding.encoder().encode(sealed)
        let read = try JSONCoding.decoder().decode(SealedText.self, from: file)

        #expect(try read.open(with: Self.passphrase) == "the key")
        #expect(throws: TLSError.self) { try read.open(with: Self.passphrase + "r") }
        #expect(!String(decoding: file, as: UTF8.self).contains("the key"))
    }

    @Test(arguments: ["salt", "sealed"])
    func `a changed file does not open`(member: String) throws {
        let sealed = try SealedText("the key", with: Self.passphrase)
        var object = try #require(try JSON(parsing: try JSONCoding.encoder().encode(sealed)).object)
        var bytes = try #require(object[member]?.string.flatMap { Data(base64Encoded: $0) })
        bytes[bytes.count - 1] ^= 1
        object[member] = .string(bytes.base64EncodedString())
        let changed = try JSONCoding.decoder().decode(SealedText.self, from: Data(JSON.object(object).bytes))

        #expect(throws: TLSError.self) { try changed.open(with: Self.passphrase) }
    }

    @Test func `a newer format is named`() throws {
        let sealed = try SealedText("the key", with: Self.passphrase)
        var object = try #require(try JSON(parsing: try JSONCoding.encoder().encode(sealed)).object)
        object["version"] = 2
        let newer = try JSONCoding.decoder().decode(SealedText.self, from: Data(JSON.object(object).bytes))

        let error = #expect(throws: TLSError.self) { try newer.open(with: Self.passphrase) }
        #expect(error?.description.contains("newer version") == true)
    }
}

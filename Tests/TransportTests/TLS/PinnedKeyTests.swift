import Crypto
import FoundationEssentials
import Model
import NIOSSL
import SwiftASN1
import Testing

@testable import Transport

/// The SubjectPublicKeyInfo of an RSA key with 2,048 bits, from `openssl rsa -pubout`.
private let rsaKey = """
    MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAn3xY36b7gcVGGRW8qGQG
    BMAh/aK61XLK/cRaM0VkLO6O6rPa9WBjXE4m/0DuSEF/sOv/UBnr1mHqToPiC3oR
    +Jjxof6yWxObSJTv37anBVz4EIRddtBEOuAQ2nHKXKo9ckVylr7G3qNZFQsiir7X
    3m4Drs5tmmRt7qm0sfnqnGWJQOBtpYkY1LR9S+PhCo105U9he7iZl9JP5EkokJ3V
    MC763FwocvF6fpvKknilCE0768BtT/HniNUaX0IT/380rPGpZMG9v2QtcdTB5djS
    z1ptkXoqOs7QEGMs5RFZFwgt5sTdVH5ZWpN58y886ACF2JMe6zb43H5cK3YHAlUq
    gQIDAQAB
    """

@Suite struct PinnedKeyTests {
    static let otherKinds: [(name: String, spki: [UInt8])] = [
        ("RSA", Array(Data(base64Encoded: rsaKey.replacing("\n", with: "")) ?? Data())),
        // The identifier of Ed25519 (RFC 8410, section 4), then the key.
        (
            "Ed25519",
            [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00]
                + Array(Curve25519.Signing.PrivateKey().publicKey.rawRepresentation)
        ),
        ("P-384", Array(P384.Signing.PrivateKey().publicKey.derRepresentation)),
        ("P-521", Array(P521.Signing.PrivateKey().publicKey.derRepresentation)),
    ]

    @Test func `a P-256 key matches its own pin`() throws {
        let spki = Array(P256.Signing.PrivateKey().publicKey.derRepresentation)
        let pin = try #require(PinnedKey.pin(ofP256: spki))

        #expect(pin.bytes == Array(SHA256.hash(data: spki)))
        #expect(PinnedKey.matches(spki: spki, pin: pin))
    }

    @Test func `another P-256 key does not match`() throws {
        let pin = try #require(PinnedKey.pin(ofP256: Array(P256.Signing.PrivateKey().publicKey.derRepresentation)))
        for _ in 0..<100 {
            #expect(!PinnedKey.matches(spki: Array(P256.Signing.PrivateKey().publicKey.derRepresentation), pin: pin))
        }
    }

    @Test(arguments: otherKinds)
    func `a key of another type has no pin and does not match, even if the digest is right`(
        name: String,
        spki: [UInt8]
    ) throws {
        let pin = try #require(KeyPin(digest: SHA256.hash(data: spki)))

        #expect(spki.count > 40)
        #expect(PinnedKey.pin(ofP256: spki) == nil)
        #expect(!PinnedKey.matches(spki: spki, pin: pin))
    }

    @Test func `the compressed encoding of a P-256 key does not match`() throws {
        let key = P256.Signing.PrivateKey().publicKey
        // The header of a P-256 SubjectPublicKeyInfo with a point of 33 bytes instead of 65.
        let header: [UInt8] = [
            0x30, 0x39, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48,
            0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x22, 0x00,
        ]
        let spki = header + Array(key.compressedRepresentation)
        let pin = try #require(KeyPin(digest: SHA256.hash(data: spki)))

        #expect(!PinnedKey.matches(spki: spki, pin: pin))
    }

    @Test func `a P-256 key with one bit changed, or cut short, does not match`() throws {
        let spki = Array(P256.Signing.PrivateKey().publicKey.derRepresentation)
        let pin = try #require(PinnedKey.pin(ofP256: spki))
        for index in spki.indices {
            var other = spki
            other[index] ^= 1
            #expect(!PinnedKey.matches(spki: other, pin: pin))
            #expect(!PinnedKey.matches(spki: Array(spki[..<index]), pin: pin))
        }
    }

    @Test func `a certificate whose key is no point on the curve is refused, and the process goes on`() throws {
        let pem = try TLSIdentity().pem
        let document = try #require(try PEMDocument.parseMultiple(pemString: pem).last)
        var bytes = document.derBytes
        // The bit string with the uncompressed point.
        let start = try #require(bytes.indices.first { bytes[$0...].starts(with: [0x03, 0x42, 0x00, 0x04]) })
        bytes[start + 10] ^= 0x55

        let certificate = try NIOSSLCertificate(bytes: bytes, format: .der)
        #expect(PinnedKey.spki(of: [certificate]) == nil)
    }
}

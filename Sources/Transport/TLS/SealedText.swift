import Crypto
import CryptoExtras
import FoundationEssentials
import Model

/// A secret text under a passphrase: a key by scrypt (RFC 7914), and ChaCha20-Poly1305 (RFC 8439).
package struct SealedText: Sendable, Codable {
    /// The version of the format, which decides the algorithms and their parameters.
    private let version: Int
    private let salt: Data
    /// Nonce, ciphertext and tag.
    private let sealed: Data

    private static let currentVersion = 1
    private static let saltLength = 16
    /// The parameters of scrypt: 128 MiB and about half a second for each attempt, also for an attacker.
    private static let (rounds, blockSize, parallelism) = (1 << 17, 8, 1)
    /// The minimum length of a passphrase in bytes.
    package static let minimumLength = 12

    /// Seals a text.
    ///
    /// - Throws: `TLSError.unusable`.
    package init(_ text: String, with passphrase: String) throws(TLSError) {
        version = Self.currentVersion
        var source = SystemRandomNumberGenerator()
        salt = Data((0..<Self.saltLength).map { _ in UInt8.random(in: .min ... .max, using: &source) })
        do {
            sealed = try ChaChaPoly.seal(Data(text.utf8), using: Self.key(passphrase, salt)).combined
        } catch { throw .unusable(reason: "\(error)") }
    }

    /// Returns the text.
    ///
    /// - Throws: `TLSError.notAccepted` for another passphrase, or a changed or newer file.
    package func open(with passphrase: String) throws(TLSError) -> String {
        guard version == Self.currentVersion else {
            throw .notAccepted(reason: "a newer version of Patchbay has sealed it")
        }
        do {
            let text = try ChaChaPoly.open(.init(combined: sealed), using: Self.key(passphrase, salt))
            return String(decoding: text, as: UTF8.self)
        } catch { throw .notAccepted(reason: "it has another passphrase, or was changed") }
    }

    private static func key(_ passphrase: String, _ salt: Data) throws -> SymmetricKey {
        try KDF.Scrypt.deriveKey(
            from: Data(passphrase.utf8),
            salt: salt,
            outputByteCount: 32,
            rounds: rounds,
            blockSize: blockSize,
            parallelism: parallelism
        )
    }
}

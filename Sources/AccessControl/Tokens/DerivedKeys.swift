import Crypto
import FoundationEssentials
import Model
import SystemIO

/// The keys derived from the sealing key, one per purpose.
struct DerivedKeys: Sendable {
    private let rows: SymmetricKey
    private let grants: SymmetricKey
    private let seals: SymmetricKey
    /// A key check value, stored in the database to detect a wrong key at startup, and reveals nothing about the
    /// other keys.
    let check: Data

    init(_ key: SymmetricKey) {
        func derive(_ purpose: String) -> SymmetricKey {
            HKDF<SHA256>.deriveKey(
                inputKeyMaterial: key,
                info: Data("patchbay v1 \(purpose)".utf8),
                outputByteCount: 32
            )
        }
        rows = derive("rows")
        grants = derive("grants")
        seals = derive("seals")
        check = derive("check").withUnsafeBytes { Data($0) }
    }

    /// Returns the MAC of a row's content, table and ID.
    func mac(for body: Data, table: String, id: String) -> Data {
        var mac = HMAC<SHA256>(key: rows)
        mac.update(data: Data("\(table)\0\(id)\0".utf8))
        mac.update(data: body)
        return Data(mac.finalize())
    }

    func verifyMAC(_ mac: Data, for body: Data, table: String, id: String) -> Bool {
        var data = Data("\(table)\0\(id)\0".utf8)
        data.append(body)
        return HMAC<SHA256>.isValidAuthenticationCode(mac, authenticating: data, using: rows)
    }

    /// Derives the grant that an invite gives to a client. The result is the same each time.
    ///
    /// Because the token is derived, a lost response can be repeated although only the token's hash is stored. The
    /// derivation needs three inputs: this key, which only the broker has; the invite's secret, which only the client
    /// has; and the client's key. The 43 letters are uniformly distributed over base62.
    func grant(_ id: String, from invite: Token, to client: Data) -> Token {
        var bytes: [UInt8] = []
        var round = 0
        while true {
            let stream = HKDF<SHA256>.deriveKey(
                inputKeyMaterial: grants,
                salt: invite.salt,
                info: Data("grant\0\(id)\0\(round)\0".utf8) + client,
                outputByteCount: 64
            )
            bytes += stream.withUnsafeBytes { $0.compactMap { Base62.letter(for: $0) } }
            if bytes.count >= Token.Kind.grant.secretLength { break }
            round += 1
        }
        let secret = String(decoding: bytes.prefix(Token.Kind.grant.secretLength), as: UTF8.self)
        return Token(.grant, id: id, secret: secret)
    }

    func seal(_ secret: EndpointSecret, context: Data) throws -> Data {
        let box = try AES.GCM.seal(Data(secret.reveal().utf8), using: seals, authenticating: context)
        // A combined form always exists with the default nonce of 12 bytes.
        guard let combined = box.combined else { throw CryptoKitError.incorrectParameterSize }
        return combined
    }

    /// Opens a sealed secret.
    ///
    /// - Throws: An error of CryptoKit when the box is damaged or bound to something else.
    func open(_ record: SecretRecord) throws -> EndpointSecret {
        let data = try AES.GCM.open(
            AES.GCM.SealedBox(combined: record.sealed),
            using: seals,
            authenticating: record.context
        )
        return try EndpointSecret(String(decoding: data, as: UTF8.self))
    }
}

/// Loads the sealing key: systemd's credential `seal`, otherwise a file beside the database.
enum SealingKeyLoader {
    /// Size of the key in bytes.
    static let size = 32

    /// Loads the key. `credentials` is `$CREDENTIALS_DIRECTORY`, where systemd puts the files of `LoadCredential=`.
    /// `isNew` allows the creation of a key, because no database exists yet.
    static func load(credentials: String?, folder: String, isNew: Bool) throws(AccessError) -> SymmetricKey {
        if let credentials {
            let path = "\(credentials)/seal"
            if let data = try? Data(contentsOf: URL(filePath: path)) { return try key(data, path) }
        }
        let path = "\(folder)/access.key"
        if try PrivateFile.check(file: path) {
            guard let data = try? Data(contentsOf: URL(filePath: path)) else { throw .keyMissing(path: path) }
            return try key(data, path)
        }
        guard isNew else { throw .keyMissing(path: path) }
        let key = SymmetricKey(size: .bits256)
        try PrivateFile.write(path, key.withUnsafeBytes { Data($0) })
        return key
    }

    /// Hashes a credential of another length than 32 bytes. At least 32 bytes are required.
    private static func key(_ data: Data, _ path: String) throws(AccessError) -> SymmetricKey {
        guard data.count >= size else { throw .keyChanged(path: path) }
        return data.count == size ? SymmetricKey(data: data) : SymmetricKey(data: SHA256.hash(data: data))
    }
}

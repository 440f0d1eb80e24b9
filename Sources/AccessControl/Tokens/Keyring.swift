import Crypto
import FoundationEssentials
import Model

/// The keys that follow from the one sealing key, each for one purpose.
struct Keyring: Sendable {
    private let rows: SymmetricKey
    private let grants: SymmetricKey
    private let seals: SymmetricKey
    /// Kept in the database, to know at start whether this is its key; says nothing about the others.
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

    /// What tells that a row of the database is as it was written, and stands where it was written.
    func code(for body: Data, table: String, id: String) -> Data {
        var code = HMAC<SHA256>(key: rows)
        code.update(data: Data("\(table)\0\(id)\0".utf8))
        code.update(data: body)
        return Data(code.finalize())
    }

    func isCode(_ code: Data, for body: Data, table: String, id: String) -> Bool {
        var data = Data("\(table)\0\(id)\0".utf8)
        data.append(body)
        return HMAC<SHA256>.isValidAuthenticationCode(code, authenticating: data, using: rows)
    }

    /// The grant that an invite gives to a client, the same one each time.
    ///
    /// Derived and not drawn, so that a reply that got lost can be given again though only its hash is kept. It takes
    /// three things to compute: this key, which only the broker has; the invite's secret, which only the other side has;
    /// and the client's key. The 43 letters are even over base62, like drawn ones.
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
        // With the usual nonce of 12 bytes there always is a combined form.
        guard let combined = box.combined else { throw CryptoKitError.incorrectParameterSize }
        return combined
    }

    /// - Throws: What CryptoKit throws for a box that is damaged, or bound to something else.
    func open(_ record: SecretRecord) throws -> EndpointSecret {
        let data = try AES.GCM.open(
            AES.GCM.SealedBox(combined: record.sealed),
            using: seals,
            authenticating: record.context
        )
        return try EndpointSecret(String(decoding: data, as: UTF8.self))
    }
}

/// Where the key is that everything kept hangs on: systemd's credential `seal`, else a file beside the database.
enum SealingKey {
    static let size = 32

    /// `credentials` is `$CREDENTIALS_DIRECTORY`, where systemd puts what `LoadCredential=` names; `isNew` says that there
    /// is no database yet, so that a key may be made.
    static func load(credentials: String?, folder: String, isNew: Bool) throws(AccessError) -> SymmetricKey {
        if let credentials {
            let path = "\(credentials)/seal"
            if let data = try? Data(contentsOf: URL(filePath: path)) { return try key(data, path) }
        }
        let path = "\(folder)/pairing.key"
        if try PrivateFile.check(file: path) {
            guard let data = try? Data(contentsOf: URL(filePath: path)) else { throw .keyMissing(path: path) }
            return try key(data, path)
        }
        guard isNew else { throw .keyMissing(path: path) }
        let key = SymmetricKey(size: .bits256)
        try PrivateFile.make(path, content: key.withUnsafeBytes { Data($0) })
        return key
    }

    /// A credential may have any form; what counts is that nobody can guess it.
    private static func key(_ data: Data, _ path: String) throws(AccessError) -> SymmetricKey {
        guard data.count >= size else { throw .keyChanged(path: path) }
        return data.count == size ? SymmetricKey(data: data) : SymmetricKey(data: SHA256.hash(data: data))
    }
}

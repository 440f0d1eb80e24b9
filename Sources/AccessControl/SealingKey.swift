import Crypto
import FoundationEssentials

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

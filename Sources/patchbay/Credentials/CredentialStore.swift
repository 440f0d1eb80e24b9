import Client
import FoundationEssentials
import Model

/// The grants that `patchbay join` stored in `$XDG_STATE_HOME/patchbay/grants`, readable only by their user.
struct CredentialStore {
    /// The content of one file.
    struct Credential: Codable {
        /// The broker's address.
        let broker: String
        let grant: Grant
        /// `pbg_…`: a secret.
        let token: String
    }

    /// The redemption that has not stored its grant yet.
    private struct Redemption: Codable {
        let invite: String
        let key: String
    }

    private static let redemption = ".redemption"
    private let folder: PrivateFolder

    var path: String { folder.path }

    init(environment: [String: String]) throws(CLIError) {
        folder = try PrivateFolder("grants", environment: environment, hint: "patchbay join --print -")
    }

    /// Creates the folders and checks that only this user can read and write them.
    ///
    /// Must be called before the invite is redeemed, because an invite can be redeemed only once.
    func prepare() throws(CLIError) { try folder.prepare() }

    /// Returns a random key, by which the broker recognizes a repeated redemption.
    static func makeKey() -> String {
        var source = SystemRandomNumberGenerator()
        return Base62.random(count: 43, from: &source)
    }

    /// Returns the key to redeem an invite with. A crash leaves the key, so that the next run gets the same grant.
    func redemptionKey(of invite: String) throws(CLIError) -> String {
        let stored = try folder.read(Redemption.self, from: Self.redemption)
        if let stored, stored.invite == invite { return stored.key }
        let key = Self.makeKey()
        try folder.write(Redemption(invite: invite, key: key), to: Self.redemption)
        return key
    }

    /// Writes a credential atomically to a file with mode 0600, and deletes the key of its redemption.
    ///
    /// - Returns: The file's path.
    func save(_ credential: Credential) throws(CLIError) -> String {
        let file = try folder.write(credential, to: "\(credential.grant.id).json")
        folder.delete(Self.redemption)
        return file
    }

    /// Returns the addresses of the brokers with a stored grant that has not expired.
    func brokers() throws(CLIError) -> [String] {
        var found: Set<String> = []
        for name in folder.names where name.hasSuffix(".json") {
            guard let credential = try folder.read(Credential.self, from: name), credential.grant.expiresAt > Date()
            else { continue }
            found.insert(credential.broker)
        }
        return found.sorted()
    }

    /// Returns all credentials for a broker, also expired ones.
    func credentials(for broker: BrokerAddress) throws(CLIError) -> [Credential] {
        var found: [Credential] = []
        for name in folder.names where name.hasSuffix(".json") {
            guard let credential = try folder.read(Credential.self, from: name), broker.isNamed(credential.broker)
            else { continue }
            found.append(credential)
        }
        return found
    }

    func delete(_ credential: Credential) { folder.delete("\(credential.grant.id).json") }

    /// Returns the newest unexpired credential for a broker.
    ///
    /// - Throws: `CLIError` if there is none, or if other users can read its file.
    func credential(for broker: BrokerAddress) throws(CLIError) -> Credential {
        let (found, now) = (try credentials(for: broker), Date())
        if let credential = found.filter({ $0.grant.expiresAt > now }).max(by: {
            $0.grant.createdAt < $1.grant.createdAt
        }) {
            return credential
        }
        throw CLIError.notPermitted(
            found.isEmpty
                ? "no grant for the broker at \(broker) is stored in \(path)"
                : "the stored grant for the broker at \(broker) has expired",
            try: "patchbay join -, with the pairing string of `patchbay pair`"
        )
    }
}

extension BrokerAddress {
    /// Returns true if a stored address means this broker. 127.0.0.1 and ::1 with the same port are one broker.
    fileprivate func isNamed(_ text: String) -> Bool {
        guard case .loopback(_, let port) = self else { return description == text }
        return ["127.0.0.1", "::1"].contains { BrokerAddress.loopback(host: $0, port: port).description == text }
    }
}

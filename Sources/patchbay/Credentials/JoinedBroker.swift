import Client
import FoundationEssentials
import Model
import Transport

/// A broker on another machine that `patchbay join` stored under a name.
struct JoinedBroker: Codable {
    let name: String
    /// A host name or an address, without brackets.
    let host: String
    let port: UInt16
    /// The pin of the broker's key.
    let pin: KeyPin
    let grant: Grant
    /// `pbg_…`: a secret. Nil if the grant is bound to this client's key.
    let token: String?

    static let nameLimit = 40

    var address: BrokerAddress { .remote(host: host, port: port, pin: pin) }

    /// Returns whether a text may be a name: 1 to 40 of `a-z`, `0-9` and `-`, without a hyphen at the beginning.
    static func isName(_ text: String) -> Bool {
        (1...nameLimit).contains(text.utf8.count) && text.first != "-" && text.utf8.allSatisfy(isNameByte)
    }

    /// Returns the default name for a host: the first part of a host name, or an address with hyphens.
    static func defaultName(for host: String) -> String {
        let text = host.prefix { $0 != "%" }.lowercased()
        let isAddress = text.contains(":") || text.allSatisfy { $0.isNumber || $0 == "." }
        let part = isAddress ? text[...] : text.prefix { $0 != "." }
        let letters = part.utf8.map { isNameByte($0) ? $0 : UInt8(ascii: "-") }
        let name = String(decoding: letters.drop { $0 == UInt8(ascii: "-") }.prefix(nameLimit), as: UTF8.self)
        return name.isEmpty ? "broker" : name
    }

    private static func isNameByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"): true
        default: false
        }
    }
}

/// The joined brokers in `$XDG_STATE_HOME/patchbay/brokers`: `NAME.json` with the grant, and `NAME.pem` with the key.
struct JoinedBrokerStore {
    private let folder: PrivateFolder

    init(environment: [String: String]) throws(CLIError) {
        let hint = "make the folder writable, or set $XDG_STATE_HOME to a folder of yours"
        folder = try PrivateFolder("brokers", environment: environment, hint: hint)
    }

    /// Creates the folder. Must be called before an invite is redeemed.
    func prepare() throws(CLIError) { try folder.prepare() }

    /// Runs the body while no other `patchbay join` stores a broker.
    func locked<Value>(_ body: () async throws -> Value) async throws -> Value { try await folder.locked(body) }

    /// The file of a broker's client key.
    func keyFile(of name: String) -> TLSIdentityFile { TLSIdentityFile("\(folder.path)/\(name).pem") }

    /// Every joined broker, by name.
    var all: [JoinedBroker] {
        get throws(CLIError) {
            var brokers: [JoinedBroker] = []
            for file in folder.names where file.hasSuffix(".json") {
                if let broker = try find(String(file.dropLast(".json".count))) { brokers.append(broker) }
            }
            return brokers
        }
    }

    /// The grants of the joined brokers whose files are readable.
    var grants: Set<String> {
        Set(folder.names.compactMap { (try? folder.read(JoinedBroker.self, from: $0))?.grant.id })
    }

    /// Returns the broker with this name, if there is one.
    func find(_ name: String) throws(CLIError) -> JoinedBroker? {
        guard JoinedBroker.isName(name), let broker = try folder.read(JoinedBroker.self, from: "\(name).json"),
            broker.name == name
        else { return nil }
        return broker
    }

    /// - Throws: `CLIError` with the names of the joined brokers, if there is no broker with this name.
    func broker(named name: String) throws(CLIError) -> JoinedBroker {
        if let broker = try find(name) { return broker }
        let names = try all.map(\.name)
        throw CLIError.notFound(
            "no joined broker has the name \"\(SanitizedText(name))\"",
            candidates: names,
            try: "patchbay brokers"
        )
    }

    /// Stores a broker in place of an earlier one with the same name.
    func save(_ broker: JoinedBroker) throws(CLIError) { try folder.write(broker, to: "\(broker.name).json") }

    /// Deletes a broker and its key.
    func delete(_ name: String) {
        folder.delete("\(name).json")
        folder.delete("\(name).pem")
    }

    /// Returns a client with the key of a joined broker.
    ///
    /// - Throws: `CLIError` if the key is missing or unusable.
    func client(of broker: JoinedBroker, timeout: Duration = .seconds(10)) throws(CLIError) -> PatchbayClient {
        let security: ClientTLS
        do {
            guard let identity = try keyFile(of: broker.name).load() else {
                throw CLIError.configuration(
                    "the key of the joined broker \(broker.name) is missing in \(folder.path)",
                    try: "patchbay leave \(broker.name), then join again with a new pairing string"
                )
            }
            security = try ClientTLS(identity: identity)
        } catch {
            throw CLIError(ofKey: error)
        }
        let name = broker.name
        // Read for every request: `patchbay mcp` runs for days and must see the grant of a later `join`.
        return PatchbayClient(address: broker.address, timeout: timeout, security: security) {
            (try? find(name))?.token.map(AccessToken.init)
        }
    }
}

extension CLIError {
    /// An error of a key file. Its message has the remedy.
    init(ofKey error: any Error) {
        self = error as? CLIError ?? CLIError(status: .configuration, message: "\(error)")
    }
}

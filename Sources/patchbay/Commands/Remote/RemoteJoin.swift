import Client
import Model
import Transport

/// Joins a broker on another machine. The broker proves that it has the pinned key before the invite is sent.
struct RemoteJoin {
    let host: String
    let port: UInt16
    /// The pin of the broker's key.
    let pin: KeyPin
    let invite: Secret
    /// The name of the grant in the broker; nil for `user@host`.
    let grantName: String?

    /// Redeems the invite without a key, and returns the token of its grant.
    ///
    /// - Throws: `ClientError`; also for an invite whose grants are bound to a key, which then is not spent.
    func token() async throws -> String {
        let security: ClientTLS
        do { security = try ClientTLS(identity: nil) } catch { throw CLIError(ofKey: error) }
        let issued = try await redeem(security)
        guard let token = issued.token else {
            throw ClientError.invalidResponse(what: "the redemption", detail: "it has no token")
        }
        return token
    }

    /// Redeems the invite with a key of its own, and stores the broker under a name.
    ///
    /// - Parameters:
    ///   - name: The name; nil for one that is made from the host.
    ///   - store: The joined brokers.
    ///   - known: The grants of the brokers that were joined when the command started. A broker with one of them is
    ///     joined again.
    /// - Returns: The joined broker.
    /// - Throws: `CLIError` before the invite is sent, if the name is not possible, another broker has it, or another
    ///   process stored it meanwhile.
    func join(as name: String?, in store: JoinedBrokerStore, known: Set<String>) async throws -> JoinedBroker {
        let name = name ?? JoinedBroker.defaultName(for: host)
        try store.prepare()
        return try await store.locked {
            try await join(as: name, in: store, existing: existing(name, in: store, known))
        }
    }

    /// Returns the broker with the name, to join it again.
    private func existing(
        _ name: String,
        in store: JoinedBrokerStore,
        _ known: Set<String>
    ) throws(CLIError) -> JoinedBroker? {
        guard let existing = try store.find(name) else { return nil }
        guard known.contains(existing.grant.id) else {
            throw CLIError.usage(
                "the name \(name) exists: another patchbay join stored it meanwhile; the invite was not sent",
                try: "patchbay join - --as NAME, or patchbay brokers"
            )
        }
        guard existing.pin == pin else {
            throw CLIError.usage(
                "\(name) is the name of another broker, at \(existing.address); the invite was not sent",
                try: "patchbay join - --as NAME, or patchbay leave \(name)"
            )
        }
        return existing
    }

    private func join(
        as name: String,
        in store: JoinedBrokerStore,
        existing: JoinedBroker?
    ) async throws -> JoinedBroker {
        let security: ClientTLS
        do { security = try ClientTLS(identity: store.keyFile(of: name).loadOrCreate()) } catch {
            throw CLIError(ofKey: error)
        }
        do {
            let issued = try await redeem(security)
            let broker = JoinedBroker(
                name: name,
                host: host,
                port: port,
                pin: pin,
                grant: issued.grant,
                token: issued.token
            )
            try store.save(broker)
            return broker
        } catch {
            // The key of a broker that was joined before is still in use. After a lost response the grant may exist, and
            // the same key gets it again within 60 s.
            let mayHaveGrant =
                switch error {
                case ClientError.connectionLost, ClientError.timedOut: true
                default: false
                }
            if existing == nil, !mayHaveGrant { store.delete(name) }
            throw error
        }
    }

    private func redeem(_ security: ClientTLS) async throws -> IssuedGrant {
        let client = PatchbayClient(address: .remote(host: host, port: port, pin: pin), security: security)
        return try await InviteRedeemer(client: client, name: grantName).redeem(invite)
    }
}

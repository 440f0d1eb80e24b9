import ArgumentParser
import Client
import FoundationEssentials
import Model

struct LeaveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "leave",
        abstract: "Revoke a stored grant and delete its key.",
        discussion: """
            Works also when the broker is away. Its grant then lives there until it expires, and this machine can no \
            longer use it.

              patchbay leave lab
              patchbay leave 127.0.0.1:7282                the stored grants of this machine
            """
    )

    @Argument(
        help: ArgumentHelp("Leave the broker with this name, or at this address of this machine.", valueName: "name")
    )
    var name: String
    @Option(help: ArgumentHelp("Use colors: auto, always or never.", valueName: "when"))
    var color = ColorChoice.auto

    func run() async throws {
        guard JoinedBroker.isName(name) else { return try await leaveLocal(try BrokerAddressArgument.address(name)) }
        let store = try JoinedBrokerStore(environment: ProcessInfo.processInfo.environment)
        let broker = try store.broker(named: name)
        let failure = await Self.revoke { () throws(CLIError) in try store.client(of: broker) }
        store.delete(broker.name)
        try Console.standard(color).line(Self.text(broker.name, broker.grant, failure: failure, now: Date()))
    }

    /// Leaves a broker of this machine: revokes and deletes all stored grants for it.
    private func leaveLocal(_ address: BrokerAddress) async throws {
        let store = try CredentialStore(environment: ProcessInfo.processInfo.environment)
        let found = try store.credentials(for: address)
        guard !found.isEmpty else {
            throw CLIError.notFound("no grant for the broker at \(address) is stored", try: "patchbay brokers")
        }
        for credential in found {
            let failure = await Self.revoke {
                PatchbayClient(address: address) { AccessToken(credential.token) }
            }
            store.delete(credential)
            let text = Self.text(address.description, credential.grant, failure: failure, now: Date())
            try Console.standard(color).line(text)
        }
    }

    /// Revokes the grant of a client.
    ///
    /// - Returns: The reason why the grant is still valid; nil if it has ended.
    private static func revoke(_ client: () throws(CLIError) -> PatchbayClient) async -> String? {
        do {
            _ = try await client().revoke("self")
            return nil
        } catch ClientError.refused(let problem) where problem.code == .unauthorized {
            return nil
        } catch let error as CLIError {
            return error.message
        } catch {
            return "\(error)"
        }
    }

    /// Describes what the command has done.
    static func text(_ name: String, _ grant: Grant, failure: String?, now: Date) -> String {
        guard let failure, grant.expiresAt > now else {
            return "Left \(name): its grant \(grant.id) has ended, and its key is deleted."
        }
        return "Left \(name): its key is deleted. The grant \(grant.id) was not revoked, because \(failure). "
            + "The grant expires \(Formatting.from(now, to: grant.expiresAt)), or an owner there runs "
            + "`patchbay revoke \(grant.id)`."
    }
}

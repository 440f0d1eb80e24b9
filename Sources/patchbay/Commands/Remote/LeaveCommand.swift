import ArgumentParser
import Client
import FoundationEssentials
import Model

struct LeaveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "leave",
        abstract: "Revoke the grant of a joined broker and delete its key.",
        discussion: """
            Works also when the broker is away. Its grant then lives there until it expires, and this machine can no \
            longer use it.

              patchbay leave lab
            """
    )

    @Argument(help: ArgumentHelp("Leave the broker with this name.", valueName: "name"))
    var name: String
    @Option(help: ArgumentHelp("Use colors: auto, always or never.", valueName: "when"))
    var color = ColorChoice.auto

    func run() async throws {
        let store = try JoinedBrokerStore(environment: ProcessInfo.processInfo.environment)
        let broker = try store.broker(named: name)
        let failure = await Self.revoke(broker, store)
        store.delete(broker.name)
        try Console.standard(color).line(Self.text(broker, failure: failure, now: Date()))
    }

    /// Revokes the grant.
    ///
    /// - Returns: The reason why the grant is still valid; nil if it has ended.
    private static func revoke(_ broker: JoinedBroker, _ store: JoinedBrokerStore) async -> String? {
        do {
            _ = try await store.client(of: broker).revoke("self")
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
    static func text(_ broker: JoinedBroker, failure: String?, now: Date) -> String {
        let (name, grant) = (broker.name, broker.grant)
        guard let failure, grant.expiresAt > now else {
            return "Left \(name): its grant \(grant.id) has ended, and its key is deleted."
        }
        return "Left \(name): its key is deleted. The grant \(grant.id) was not revoked, because \(failure). "
            + "The grant expires \(Formatting.from(now, to: grant.expiresAt)), or an owner there runs "
            + "`patchbay revoke \(grant.id)`."
    }
}

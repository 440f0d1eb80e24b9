import AccessControl
import FoundationEssentials
import Glibc
import Logging
import Model
import Synchronization

/// Creates, redeems and revokes until it is killed, or kills itself at one failure point. Prints each operation when it
/// begins and when it is complete.
///
/// Arguments: the state folder; optionally the operation, the failure point and the round of the kill.
@main
enum PairingCrash {
    private struct Moment: Sendable {
        var operation = ""
        var round = 0
    }

    private static let moment = Mutex(Moment())
    private static let owner = AuditActor.process(uid: 0, pid: 1, executable: SanitizedText("test"))
    private static let socket = RequestSource.unix(uid: 0)

    static func main() async throws {
        let arguments = CommandLine.arguments
        let wanted = arguments.dropFirst(2).joined(separator: " ")
        let quiet = Logger(label: "crash", factory: { _ in SwiftLogNoOpLogHandler() })
        let failurePoint = { @Sendable (point: FailurePoint) in
            let now = moment.withLock { $0 }
            if wanted == "\(now.operation) \(point.rawValue) \(now.round)" { kill(getpid(), SIGKILL) }
        }
        // Small segments, so that one begins in nearly every round. For a crash between two segments, one segment per
        // line.
        let segment = wanted.contains(FailurePoint.auditSegmentFull.rawValue) ? 1 : 1_500
        let store = try AccessStore(in: arguments[1], logger: quiet, auditSegment: segment, failurePoint: failurePoint)
        for round in 1...10_000 { try await run(round, store) }
    }

    private static func run(_ round: Int, _ store: AccessStore) async throws {
        let spec = InviteSpec(Permissions([.registryRead], on: .all))
        begin("create", round)
        let (_, invite) = try await store.invites.create(spec, by: owner, from: socket)
        report("created \(invite.reveal())")

        begin("redeem", round)
        let redemption = RedemptionSpec(
            token: invite.reveal(),
            client: "client of round \(round)",
            name: SanitizedText("client")
        )
        let (grant, token) = try await store.invites.redeem(redemption, from: socket)
        report("redeemed \(invite.id) \(token.reveal())")

        // Keeps every second grant.
        guard round.isMultiple(of: 2) else { return }
        begin("revoke", round)
        try await store.grants.revoke(.one(grant.id), by: owner, from: socket)
        report("revoked \(grant.id)")
    }

    private static func begin(_ operation: String, _ round: Int) {
        moment.withLock { $0 = Moment(operation: operation, round: round) }
    }

    /// Uses one write(2), so that a line is written whole or not at all.
    private static func report(_ line: String) {
        let bytes = Array("\(line)\n".utf8)
        _ = write(STDOUT_FILENO, bytes, bytes.count)
    }
}

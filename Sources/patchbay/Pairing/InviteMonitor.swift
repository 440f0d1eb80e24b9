import Client
import FoundationEssentials
import Model

/// An open invite, watched until it closes: who joined, and how much time is left.
struct InviteMonitor {
    let client: PatchbayClient
    let issued: IssuedInvite
    /// Told each redeemer once.
    let joined: @Sendable (Grant) throws -> Void
    /// Told once a second how long it stays open.
    let left: @Sendable (Double) -> Void
    var clock: any Clock<Duration> = ContinuousClock()
    var now: @Sendable () -> Date = { Date() }

    private static let interval = Duration.seconds(1)

    /// Returns how it closed. A broker that restarts meanwhile is waited for.
    ///
    /// The broker is asked each second: a redemption is told in no feed, as who may see endpoints may not see this.
    func watch() async throws -> Invite {
        var known: Set<String> = []
        while true {
            do {
                let invites = try await client.invites().invites
                guard let invite = invites.first(where: { $0.id == issued.invite.id }) else {
                    throw CLIError(
                        status: .notFound,
                        message: "the broker does not know invite \(issued.invite.id) any more",
                        remedy: "patchbay pair"
                    )
                }
                if invite.used > known.count {
                    let grants = try await client.grants().grants
                    for grant in grants.reversed() where grant.invite == invite.id && known.insert(grant.id).inserted {
                        try joined(grant)
                    }
                }
                if invite.end != nil { return invite }
            } catch let error as ClientError where error.isPassing {
                // The window stays open while the broker restarts, and no longer than it was to be.
                guard now() < issued.invite.expires else { throw error }
            }
            left(issued.invite.expires.timeIntervalSince(now()))
            try await clock.sleep(for: Self.interval)
        }
    }
}

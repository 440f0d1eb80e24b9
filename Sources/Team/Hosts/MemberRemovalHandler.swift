import AccessControl
import Client
import Logging
import Model
import ServiceLifecycle
import Tunnels

/// Closes every connection from and to a host that is removed from the team, and ends the leases of its clients.
///
/// A host whose key is replaced counts as removed. The removal of this host itself ends its part in the team.
struct MemberRemovalHandler: Service {
    /// The name of this host.
    let host: HostName
    let members: TeamMembers
    let connections: MemberConnections
    let client: HostClient
    let tunnels: TunnelTable
    let leases: LeaseService
    let onOwnRemoval: @Sendable () -> Void
    let logger: Logger

    func run() async throws {
        let removals = members.removals()
        // Some may have been removed while the broker did not run; their connections are refused.
        for await member in removals.cancelOnGracefulShutdown() {
            if member.name == host {
                onOwnRemoval()
                continue
            }
            client.closeIdle(to: member.name)
            let closed = await connections.closeRefused(by: members)
            leases.endLeases(ofClientsOn: member.name)
            // The connections above carried their streams. The tunnels to the host now show that it is gone.
            await tunnels.refreshTargets()
            logger.notice(
                "a host was removed from the team; its connections are closed",
                metadata: ["host": "\(member.name)", "had_connections": "\(closed.contains(member.name))"]
            )
        }
    }
}

extension TeamMembers: MemberDirectory {}

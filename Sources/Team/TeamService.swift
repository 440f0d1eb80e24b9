package import AccessControl
import Logging
import Model
package import Registry
package import ServiceLifecycle
import SystemIO
package import Tunnels

/// Runs the services of the team while the broker takes part in one, and makes the changes of `CurrentTeam`.
///
/// A change touches only what concerns other hosts: their connections and entries, and the leases of their clients. The
/// endpoints, tunnels, grants and leases of this host stay.
package struct TeamService: Service {
    /// The parts of the broker that the team uses.
    package struct Parts: Sendable {
        let registry: EndpointRegistry
        let endpoints: RemoteEndpoints
        let attachedDevices: any DeviceListing
        let devices: TeamDevices
        let leases: LeaseService
        let tunnels: TunnelTable

        /// - Parameters:
        ///   - registry: The endpoints of this host.
        ///   - endpoints: Gets the endpoints of the other hosts.
        ///   - attachedDevices: The phones of this host.
        ///   - devices: Gets the phones of the other hosts.
        ///   - leases: The leases of this host.
        ///   - tunnels: The tunnels, whose targets may be on other hosts.
        package init(
            registry: EndpointRegistry,
            endpoints: RemoteEndpoints,
            attachedDevices: any DeviceListing,
            devices: TeamDevices,
            leases: LeaseService,
            tunnels: TunnelTable
        ) {
            self.registry = registry
            self.endpoints = endpoints
            self.attachedDevices = attachedDevices
            self.devices = devices
            self.leases = leases
            self.tunnels = tunnels
        }
    }

    /// The services of one team.
    private struct Run: Sendable {
        let team: RunningTeam
        let group: ServiceGroup
        /// Completed when all services have ended.
        let end = Promise<Void>()
    }

    private let current: CurrentTeam
    private let team: LocalTeam
    private let parts: Parts
    private let listener: @Sendable (RunningTeam) -> any Service

    /// - Parameters:
    ///   - current: The team of the broker. Its registry and leases have it at the start, too.
    ///   - team: The files of the team.
    ///   - parts: The parts of the broker.
    ///   - listener: Creates the team listener.
    package init(
        _ current: CurrentTeam,
        _ team: LocalTeam,
        _ parts: Parts,
        listener: @escaping @Sendable (RunningTeam) -> any Service
    ) {
        (self.current, self.team, self.parts, self.listener) = (current, team, parts, listener)
    }

    package func run() async throws {
        try await withThrowingDiscardingTaskGroup { tasks in
            func start(_ team: RunningTeam) -> Run {
                let run = makeRun(team)
                tasks.addTask {
                    defer { run.end.complete(.success(())) }
                    try await run.group.run()
                }
                return run
            }
            var run = current.running.map(start)
            for await change in current.changes.cancelOnGracefulShutdown() {
                let next = await next(after: change.kind, run?.team)
                if next.isChange {
                    if let run { await stop(run) }
                    run = nil
                    if let team = next.team {
                        await join(team)
                        run = start(team)
                    }
                    // Tunnels may have targets on other hosts.
                    await parts.tunnels.refreshTargets()
                }
                change.promise.complete(.success(()))
            }
        }
    }

    /// Returns the team after a change, and whether it is another one.
    private func next(after kind: CurrentTeam.Change.Kind, _ present: RunningTeam?) async -> (
        team: RunningTeam?, isChange: Bool
    ) {
        guard case .useSaved = kind else { return (nil, true) }
        if let present, await present.continues(team) { return (present, false) }
        let saved: RunningTeam?
        do { saved = try await RunningTeam(team, logger: team.logger) } catch {
            team.logger.error("cannot read the team of this host", metadata: ["reason": "\(error)"])
            return (present, false)
        }
        return (saved, saved != nil || present != nil)
    }

    private func makeRun(_ team: RunningTeam) -> Run {
        let onOwnRemoval = { @Sendable [current] in _ = current.request(.useSaved) }
        let services = team.services(parts, onOwnRemoval: onOwnRemoval) + [listener(team)]
        return Run(
            team: team,
            group: ServiceGroup(
                configuration: ServiceGroupConfiguration(
                    services: services.map { .init(service: $0) },
                    logger: self.team.logger
                )
            )
        )
    }

    private func join(_ team: RunningTeam) async {
        current.set(team)
        await parts.registry.read { [parts, host = team.host] in parts.endpoints.setOwn(host, local: $0) }
        parts.leases.use(team.claims)
        self.team.logger.notice(
            "takes part in the team",
            metadata: ["team": "\(team.membership.team)", "host": "\(team.host)"]
        )
    }

    private func stop(_ run: Run) async {
        // First, so that the end of the session lease ends no lease.
        parts.leases.use(nil)
        current.set(nil)
        await run.group.triggerGracefulShutdown()
        // The listener stops first, and waits for its connections.
        await run.team.disconnect(parts.leases)
        try? await run.end.value()
        await parts.registry.read { [parts] in parts.endpoints.setOwn(nil, local: $0) }
        await parts.devices.removeAll()
        team.logger.notice("takes no part in the team any more", metadata: ["team": "\(run.team.membership.team)"])
    }
}

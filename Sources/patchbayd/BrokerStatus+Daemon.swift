import FoundationEssentials
import Glibc
import Model
import AccessControl
import Registry
import Tunnels

extension BrokerStatus {
    /// How everything is now.
    init(
        of registry: EndpointRegistry,
        tunnels: TunnelTable,
        phones: AttachedDevices,
        sources: [SourceStatus],
        pairing: AccessStore,
        storage: [String],
        anyUser: Bool,
        since: Date
    ) async {
        let (endpoints, revision) = await registry.list
        var findings = await pairing.findings
        let behind = await pairing.clockBehind
        if behind > .seconds(1) {
            findings.append(
                "the clock went back by \(behind.components.seconds) s, and nothing lives longer for that; "
                    + "if it was wrong before and is right now: patchbay clock recover"
            )
        }
        let storage = storage + [await pairing.storageProblem].compactMap { $0 }
        self.init(
            version: Version.text,
            pid: getpid(),
            since: since,
            revision: revision,
            endpoints: Dictionary(grouping: endpoints, by: \.state.rawValue).mapValues(\.count),
            devices: await phones.devices().count,
            tunnels: await tunnels.list().count,
            sources: sources + (SourceStatus(of: await registry.refusals).map { [$0] } ?? []),
            findings: findings.isEmpty ? nil : findings,
            storage: storage.isEmpty ? nil : storage,
            anyUser: anyUser ? true : nil
        )
    }
}

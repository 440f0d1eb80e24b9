package import AccessControl
package import FoundationEssentials
import Glibc
package import Model
package import Registry
package import Tunnels

extension BrokerStatus {
    /// Collects the current status of every part.
    package init(
        of list: any EndpointListing,
        tunnels: TunnelTable,
        devices: any DeviceListing,
        sources: [SourceStatus],
        accessStore: AccessStore,
        storage: [String],
        allowAnyUser: Bool,
        remote: RemoteStatus,
        startedAt: Date
    ) async {
        let (endpoints, revision) = await list.list
        var findings = await accessStore.findings
        let lag = await accessStore.wallClockLag
        if lag > .seconds(1) {
            findings.append(
                "the clock went back by \(lag.components.seconds) s; expiry times are not extended; "
                    + "if it was wrong before and is right now: patchbay doctor --fix-clock"
            )
        }
        let storage = storage + [await accessStore.storageProblem].compactMap { $0 }
        let streams = Int(tunnels.streams.statistics.open)
        self.init(
            version: Version.text,
            pid: getpid(),
            startedAt: startedAt,
            revision: revision,
            endpoints: Dictionary(grouping: endpoints.combined, by: \.state.rawValue).mapValues(\.count),
            devices: await devices.devices().count(where: \.isReady),
            tunnels: await tunnels.list().count,
            streams: streams == 0 ? nil : streams,
            sources: sources,
            findings: findings.isEmpty ? nil : findings,
            storage: storage.isEmpty ? nil : storage,
            allowAnyUser: allowAnyUser ? true : nil,
            remote: remote,
            host: list.hosts?.own,
            hosts: list.hosts.flatMap { $0.own == nil ? nil : $0.others }
        )
    }
}

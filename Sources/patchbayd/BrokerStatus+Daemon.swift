import FoundationEssentials
import Glibc
import Model
import Registry
import Tunnels

extension BrokerStatus {
    /// How everything is now.
    init(
        of registry: EndpointRegistry,
        tunnels: TunnelTable,
        phones: PhoneList,
        sources: [SourceStatus],
        since: Date
    ) async {
        let (endpoints, revision) = await registry.list
        self.init(
            version: Version.text,
            pid: getpid(),
            since: since,
            revision: revision,
            endpoints: Dictionary(grouping: endpoints, by: \.state.rawValue).mapValues(\.count),
            devices: await phones.devices().count,
            tunnels: await tunnels.list().count,
            sources: sources
        )
    }
}

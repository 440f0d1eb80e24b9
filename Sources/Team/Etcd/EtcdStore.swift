import NIOCore
import SwiftProtobuf

/// The registry of a team on a cluster of etcd 3.4 or later.
package struct EtcdStore: TeamStore {
    private let client: EtcdClient

    package init(_ client: EtcdClient) { self.client = client }

    package func use(_ connection: TeamRegistryConnection) throws(TeamStoreError) {
        let configuration = try EtcdConfiguration(
            endpoints: client.configuration.endpoints,
            authority: connection.authority,
            certificate: connection.certificate,
            key: connection.key
        )
        client.use(configuration.context)
    }

    package func list(_ prefix: String) async throws(TeamStoreError) -> TeamStoreList {
        let range = EtcdKeyRange(prefix: prefix)
        let response = try await client.call(
            .range,
            .with {
                $0.key = range.key
                $0.rangeEnd = range.end
            }
        )
        return try response.list()
    }

    package func changes(
        of prefix: String,
        after revision: Int64
    ) -> AsyncThrowingStream<TeamStoreChanges, any Error> {
        AsyncThrowingStream { continuation in
            let client = client
            let endpoint = client.currentEndpoint
            let finish = { @Sendable (error: TeamStoreError) in
                switch error {
                // Another server can accept the certificate that this one refused.
                case .unreachable, .denied: client.leave(endpoint, because: error)
                default: break
                }
                continuation.finish(throwing: error)
            }
            let stream = client.connection(to: endpoint).flatMap { connection in
                connection.openStream(EtcdMethod.watch.path) {
                    EtcdWatchHandler(
                        EtcdWatch(prefix: prefix, after: revision),
                        interval: EtcdTiming.progress,
                        onChanges: { continuation.yield($0) },
                        onEnd: finish
                    )
                }
            }
            stream.whenFailure { error in
                finish((error as? EtcdError)?.asTeamStoreError ?? .unreachable(reason: "\(error)"))
            }
            continuation.onTermination = { _ in stream.whenSuccess { $0.close(promise: nil) } }
        }
    }

    package func write(
        _ writes: [TeamStoreWrite],
        if condition: TeamStoreCondition?
    ) async throws(TeamStoreError) -> Bool {
        guard writes.count <= TeamStoreWrite.limit else {
            throw .failed(reason: "\(writes.count) writes are too many for one transaction")
        }
        let response = try await client.call(
            .transaction,
            .with {
                $0.compare = condition.map { [$0.comparison] } ?? []
                $0.success = writes.map(\.operation)
            }
        )
        return response.succeeded
    }

    package func grantSessionLease(timeToLive: Duration) async throws(TeamStoreError) -> SessionLease.ID {
        // etcd counts in seconds; a session lease is at least as long as requested.
        let (seconds, rest) = timeToLive.components
        let response = try await client.call(.grantSessionLease, .with { $0.ttl = seconds + (rest > 0 ? 1 : 0) })
        return response.id
    }

    package func renewSessionLease(_ id: SessionLease.ID) async throws(TeamStoreError) {
        let response = try await client.call(.renewSessionLease, .with { $0.id = id })
        guard response.ttl > 0 else { throw .sessionLeaseEnded }
    }

    package func revokeSessionLease(_ id: SessionLease.ID) async throws(TeamStoreError) {
        do { _ = try await client.call(.revokeSessionLease, .with { $0.id = id }) } catch .sessionLeaseEnded {}
    }
}

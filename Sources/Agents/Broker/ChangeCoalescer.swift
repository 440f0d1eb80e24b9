import AccessControl
import Apps
import Model
import Registry
import ServiceLifecycle
import Synchronization

/// Collects changes for 250 ms and sends each subscriber those that it may see.
///
/// A device that is plugged in changes many endpoints at once. Without coalescing, clients would read the list again
/// for each change.
final class ChangeCoalescer: Sendable {
    static let interval = Duration.milliseconds(250)
    /// The maximum number of changes that wait for a slow subscriber. At the limit its stream ends.
    private static let backlog = 256

    /// The changes since the last publication.
    struct Batch: Sendable {
        /// The current state of each changed endpoint.
        var endpoints: [EndpointID: Endpoint] = [:]
        /// The endpoints that were added or removed.
        var addedOrRemoved: Set<EndpointID> = []
        var devicesChanged = false
        /// True if a host of the team was added or removed, or if its entries became outdated or current.
        var hostsChanged = false

        mutating func record(_ change: EndpointChange) {
            endpoints[change.endpoint.id] = change.endpoint
            if change.kind != .changed { addedOrRemoved.insert(change.endpoint.id) }
        }

        /// Returns the changes that a principal may see, in a fixed order: lists first.
        func changes(for principal: Principal) -> [ServerChange] {
            guard principal.may(.registryRead) else { return [] }
            let seen = endpoints.values.filter(principal.canSee).map(\.id).sorted()
            var changes: [ServerChange] = []
            if seen.contains(where: addedOrRemoved.contains) { changes.append(.resources) }
            if !seen.isEmpty || hostsChanged { changes.append(.resource(BrokerResource.endpoints.uri)) }
            changes += seen.map { .resource(BrokerResource.endpoint($0).uri) }
            if devicesChanged, principal.canSeeAllEndpoints { changes.append(.resource(BrokerResource.devices.uri)) }
            return changes
        }
    }

    private struct Subscriber: Sendable {
        let principal: Principal
        let continuation: AsyncStream<ServerChange>.Continuation
    }

    private let subscribers = Mutex<[Int: Subscriber]>([:])
    private let count = Mutex(0)
    private let pending = Mutex(Batch())
    private let wakeUps = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    private let list: any EndpointListing
    private let devices: any DeviceListing
    private let clock: any Clock<Duration>

    init(list: any EndpointListing, devices: any DeviceListing, clock: any Clock<Duration>) {
        self.list = list
        self.devices = devices
        self.clock = clock
    }

    /// Returns a stream of the changes that a principal may see.
    func changes(for principal: Principal) -> AsyncStream<ServerChange> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: ServerChange.self,
            bufferingPolicy: .bufferingOldest(Self.backlog)
        )
        let number = count.withLock { count in
            count += 1
            return count
        }
        subscribers.withLock { $0[number] = Subscriber(principal: principal, continuation: continuation) }
        continuation.onTermination = { [weak self] _ in self?.subscribers.withLock { $0[number] = nil } }
        return stream
    }

    /// Publishes changes until the broker stops.
    func run() async {
        let revision = await list.revision
        await withDiscardingTaskGroup { group in
            group.addTask { await self.recordEndpointChanges(after: revision) }
            group.addTask {
                var isFirst = true
                for await _ in await self.devices.deviceLists().cancelOnGracefulShutdown() {
                    // The first list is the current state, not a change.
                    if !isFirst { self.record { $0.devicesChanged = true } }
                    isFirst = false
                }
            }
            group.addTask {
                guard let hosts = self.list.hosts else { return }
                for await _ in hosts.lists().dropFirst().cancelOnGracefulShutdown() {
                    self.record { $0.hostsChanged = true }
                }
            }
            for await _ in wakeUps.stream.cancelOnGracefulShutdown() {
                guard (try? await clock.sleep(for: Self.interval)) != nil else { break }
                publish()
            }
            group.cancelAll()
        }
    }

    /// Records the changes of the list. It ends the stream of a slow follower, which then resumes at its
    /// last revision.
    private func recordEndpointChanges(after start: UInt64) async {
        var revision = start
        while !Task.isCancelled, !Task.isShuttingDownGracefully {
            let (start, changes) = await list.changes(after: revision)
            if case .replay(let missed) = start { for change in missed { record { $0.record(change) } } }
            if case .snapshot(let endpoints, let newest) = start {
                revision = newest
                record { pending in for endpoint in endpoints { pending.endpoints[endpoint.id] = endpoint } }
            }
            for await change in changes.cancelOnGracefulShutdown() {
                revision = change.revision
                record { $0.record(change) }
            }
        }
    }

    private func record(_ body: (inout Batch) -> Void) {
        pending.withLock { body(&$0) }
        wakeUps.continuation.yield()
    }

    private func publish() {
        let batch = pending.withLock { pending in
            defer { pending = Batch() }
            return pending
        }
        for subscriber in subscribers.withLock({ Array($0.values) }) {
            for change in batch.changes(for: subscriber.principal) {
                if case .dropped = subscriber.continuation.yield(change) {
                    subscriber.continuation.finish()
                    break
                }
            }
        }
    }
}

import Model
import Registry
import ServiceLifecycle
import Synchronization

/// Gathers what changes for a quarter of a second, and tells everybody who listens what of it is theirs to know.
///
/// A phone that is plugged in changes many endpoints at once; a client that reads the list again for each would be busy.
final class ChangeCoalescer: Sendable {
    static let gathering = Duration.milliseconds(250)
    /// Changes that wait for a slow listener; then its stream ends.
    private static let backlog = 256

    /// What has changed since the last telling.
    struct Gathered: Sendable {
        /// Each endpoint as it is now.
        var endpoints: [EndpointID: Endpoint] = [:]
        /// Those that came or went.
        var listed: Set<EndpointID> = []
        var phones = false

        mutating func take(_ change: EndpointChange) {
            endpoints[change.endpoint.id] = change.endpoint
            if change.kind != .changed { listed.insert(change.endpoint.id) }
        }

        /// In a fixed order: the lists first.
        func changes(for caller: AgentCaller) -> [ServerChange] {
            guard caller.may(.registryRead) else { return [] }
            let seen = endpoints.values.filter(caller.sees).map(\.id).sorted()
            var changes: [ServerChange] = []
            if seen.contains(where: listed.contains) { changes.append(.resources) }
            if !seen.isEmpty { changes.append(.resource(BrokerResource.endpoints.uri)) }
            changes += seen.map { .resource(BrokerResource.endpoint($0).uri) }
            if phones, caller.seesAll { changes.append(.resource(BrokerResource.devices.uri)) }
            return changes
        }
    }

    private struct Listener: Sendable {
        let caller: AgentCaller
        let out: AsyncStream<ServerChange>.Continuation
    }

    private let listeners = Mutex<[Int: Listener]>([:])
    private let count = Mutex(0)
    private let gathered = Mutex(Gathered())
    private let bell = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    private let clock: any Clock<Duration>

    init(clock: any Clock<Duration>) { self.clock = clock }

    func changes(for caller: AgentCaller) -> AsyncStream<ServerChange> {
        let (stream, out) = AsyncStream.makeStream(
            of: ServerChange.self,
            bufferingPolicy: .bufferingOldest(Self.backlog)
        )
        let number = count.withLock { count in
            count += 1
            return count
        }
        listeners.withLock { $0[number] = Listener(caller: caller, out: out) }
        out.onTermination = { [weak self] _ in self?.listeners.withLock { $0[number] = nil } }
        return stream
    }

    /// Until the broker stops.
    func follow(_ registry: EndpointRegistry, _ phones: Phones) async {
        let revision = await registry.revision
        await withDiscardingTaskGroup { group in
            group.addTask { await self.followEndpoints(registry, after: revision) }
            group.addTask {
                var isFirst = true
                for await _ in await phones.lists().cancelOnGracefulShutdown() {
                    // As it stands is no news.
                    if !isFirst { self.gather { $0.phones = true } }
                    isFirst = false
                }
            }
            for await _ in bell.stream.cancelOnGracefulShutdown() {
                guard (try? await clock.sleep(for: Self.gathering)) != nil else { break }
                tell()
            }
            group.cancelAll()
        }
    }

    /// The registry lets a follower go that is too slow; then it goes on where it was.
    private func followEndpoints(_ registry: EndpointRegistry, after start: UInt64) async {
        var revision = start
        while !Task.isCancelled, !Task.isShuttingDownGracefully {
            let (start, changes) = await registry.changes(after: revision)
            if case .replay(let missed) = start { for change in missed { gather { $0.take(change) } } }
            if case .snapshot(let endpoints, let newest) = start {
                revision = newest
                gather { gathered in for endpoint in endpoints { gathered.endpoints[endpoint.id] = endpoint } }
            }
            for await change in changes.cancelOnGracefulShutdown() {
                revision = change.revision
                gather { $0.take(change) }
            }
        }
    }

    private func gather(_ body: (inout Gathered) -> Void) {
        gathered.withLock { body(&$0) }
        bell.continuation.yield()
    }

    private func tell() {
        let news = gathered.withLock { gathered in
            defer { gathered = Gathered() }
            return gathered
        }
        for listener in listeners.withLock({ Array($0.values) }) {
            for change in news.changes(for: listener.caller) {
                if case .dropped = listener.out.yield(change) {
                    listener.out.finish()
                    break
                }
            }
        }
    }
}

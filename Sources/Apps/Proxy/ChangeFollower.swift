import AccessControl
import Model
import Synchronization
import SystemIO

/// Keeps the change stream of each app open while the app has subscribers. One task and one `ChangeStreamState` per app.
///
/// Uses the broker's own permissions, so that no subscriber depends on the permissions of another one. `ChangeMonitor`
/// checks the permissions of each subscriber.
final class ChangeFollower: Sendable {
    /// The apps that a task follows, each with the promise that ends the stream in progress.
    private let interruptions = Mutex<[EndpointID: Promise<Void>]>([:])

    private let context: ProxyContext
    private let pool: UpstreamSessionPool
    private let watch: ElapsedTimer

    init(_ context: ProxyContext, of pool: UpstreamSessionPool) {
        self.context = context
        self.pool = pool
        watch = ElapsedTimer(context.clock)
    }

    /// Follows an app in the background until the app has no subscribers of its own.
    ///
    /// - Parameters:
    ///   - id: The app.
    ///   - onMissed: Called when the stream is open again after changes may have been missed.
    func follow(_ id: EndpointID, onMissed: @escaping @Sendable () -> Void) {
        context.tasks.schedule { [self] in
            let isFirst = interruptions.withLock { interruptions in
                guard interruptions[id] == nil else { return false }
                interruptions[id] = Promise<Void>()
                return true
            }
            guard isFirst else { return }
            await withTaskGroup(of: Void.self) { group in
                group.addTask { await self.context.changeNotifier.waitUntilUnsubscribed(id) }
                group.addTask { await self.keepOpen(id, onMissed) }
                await group.next()
                group.cancelAll()
            }
            interruptions.withLock { $0[id] = nil }
            // A new subscriber may have arrived after the last one left.
            if context.changeNotifier.hasSubscribers(only: id), !Task.isCancelled { follow(id, onMissed: onMissed) }
        }
    }

    /// Ends the stream in progress because the app's launch has ended. The stream is opened again with backoff.
    func endLaunch(of id: EndpointID) { interruptions.withLock { $0[id] }?.complete(.success(())) }

    private func keepOpen(_ id: EndpointID, _ onMissed: @escaping @Sendable () -> Void) async {
        let state = Mutex(ChangeStreamState())
        while !Task.isCancelled {
            // Created for each round, because a cancelled iteration ends its stream.
            let wakeups = context.stateNotifier.stream(of: id, bufferSize: 1) { _, _ in () }
            let interruption = Promise<Void>()
            interruptions.withLock { $0[id] = interruption }
            let end = await readOnce(id, until: interruption) { [watch] in
                let now = watch.elapsed
                if state.withLock({ $0.opened(at: now) }) { onMissed() }
            }
            let now = watch.elapsed
            switch state.withLock({ $0.ended(end, at: now) }) {
            case .open: continue
            case .openAfter(let pause):
                guard (try? await context.clock.sleep(for: ChangeStreamState.shortestPause)) != nil else { return }
                _ = try? await withTimeout(pause - ChangeStreamState.shortestPause, clock: context.clock) {
                    for await _ in wakeups { break }
                    return true
                }
            case .waitForStateChange: for await _ in wakeups { break }
            }
        }
    }

    /// Opens the stream and reads it until its end.
    private func readOnce(
        _ id: EndpointID,
        until interruption: Promise<Void>,
        opened: @escaping @Sendable () -> Void
    ) async -> ChangeStreamState.End {
        do {
            let end = try await withCancellation(when: { try await interruption.value() }) { [pool] in
                // The end of the access to the endpoint ends the stream.
                try await pool.endpointTasks.run(at: id) {
                    let endpoint = try await pool.endpoint(id)
                    let (session, access) = try await pool.authorize(.broker, to: endpoint)
                    return try await session.streamChanges(of: endpoint, by: access.routes, opened: opened)
                }
            }
            return end ?? .cut
        } catch let failure as AppError {
            return failure.endsWithStateChange ? .unavailable : .cut
        } catch {
            return .cut
        }
    }
}

extension AppError {
    /// Indicates whether the registry or the access control reports the end of the error's cause.
    fileprivate var endsWithStateChange: Bool {
        switch self {
        case .unreachable(let failure): !RetryPolicy.shouldPoll(failure)
        case .notApproved, .denied, .mismatch, .forbidden, .notMCP, .tokenRequired: true
        default: false
        }
    }
}

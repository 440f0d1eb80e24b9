import Logging
import Model
import ServiceLifecycle
import SystemIO

/// The running table: serves listeners, retries local addresses, and keeps the states current.
extension TunnelTable: Service {
    /// Serves every tunnel until graceful shutdown, then closes all listeners and connections.
    package func run() async throws {
        await withDiscardingTaskGroup { group in
            for await (id, event) in dependencies.events.stream.cancelOnGracefulShutdown() {
                switch event {
                case .fallback(let request): group.addTask { await self.connect(request, for: id) }
                case .retry: group.addTask { await self.retry(id) }
                default: await handle(event, for: id)
                }
            }
            await stop()
            group.cancelAll()
        }
    }

    /// Resolves the targets of all tunnels again. Called after devices or endpoints have changed.
    ///
    /// Calls during a refresh cause one more refresh, however many there are.
    package func refreshTargets() async {
        routeGeneration += 1
        guard !isRefreshing else { return }
        isRefreshing = true
        defer { isRefreshing = false }
        var done: UInt64
        repeat {
            done = routeGeneration
            for id in records.ids { await refreshTarget(of: id) }
            await streams.closeForbidden()
        } while done != routeGeneration
    }

    /// Resolves a tunnel's target and sets its state accordingly.
    func refreshTarget(of id: String) async {
        guard let listener = records[id]?.listener else { return }
        let asked = routeGeneration
        var state = Tunnel.State.active
        var target: TargetSnapshot?
        // The revoked routes may still have open connections.
        var revoked = RevokedRoutes.addresses([])
        do {
            target = try await listener.target()
            target?.generation = asked
            revoked = .addresses(target?.refused ?? [])
            if let absence = target?.absence {
                // Each client is connected by the fallback.
                (target, state) = (nil, .waiting(reason: absence.failure.description))
                records[id]?.refusal = nil
            }
        } catch {
            state = .waiting(reason: error.description)
            if error.reason == .forbidden { revoked = .network }
        }
        // An older result must not overwrite a newer one. The newer refresh sets the state.
        guard asked == routeGeneration else { return }
        if let routes = target?.plans.map(\.route), routes != records[id]?.routes {
            records[id]?.routes = routes
            records[id]?.refusal = nil
        }
        if target != nil, let refusal = records[id]?.refusal { state = .waiting(reason: refusal) }
        listener.setTarget(target)
        if records[id]?.acceptError == nil { set(id, state) }
        if !revoked.isEmpty { await listener.closeConnections(over: revoked) }
    }

    /// Sets a tunnel's state and publishes a change.
    func set(_ id: String, _ state: Tunnel.State) {
        guard let old = records[id]?.state, old != state else { return }
        records[id]?.state = state
        if let tunnel = records[id]?.tunnel { dependencies.feed.send(.changed(tunnel)) }
    }

    /// Finds out whether something listens at the targets of new tunnels, for at most 1 s. Of many tunnels, some are
    /// checked: a phone has few streams.
    func checkListeners(of ids: [String]) async {
        let listeners = ids.prefix(Self.checkedTunnels).filter { records[$0]?.state == .active }
            .compactMap { id in records[id]?.listener.map { (id, $0) } }
        await withTaskGroup(of: (String, DialError?).self) { group in
            for (id, listener) in listeners {
                group.addTask { [clock = dependencies.clock] in
                    (id, try? await withTimeout(.seconds(1), clock: clock) { await listener.refusal() } ?? nil)
                }
            }
            for await case (let id, let refusal?) in group { await note(refusal, of: id) }
        }
    }

    private static let checkedTunnels = 16

    /// Notes that nothing listens at a target.
    private func note(_ refusal: DialError, of id: String) async {
        guard let old = records[id], old.refusal != refusal.description else { return }
        records[id]?.refusal = refusal.description
        // The next connection that works is reported, because the target is set anew.
        await refreshTarget(of: id)
    }

    private nonisolated func retry(_ id: String) async {
        repeat {
            guard (try? await dependencies.clock.sleep(for: dependencies.limits.listenRetryInterval)) != nil else {
                return
            }
        } while await !reopenListener(of: id)
    }

    /// Connects for a client and sets the tunnel's state by the result, which is more reliable than the resolver.
    private func connect(_ request: FallbackRequest, for id: String) async {
        guard let listener = records[id]?.listener else { return }
        let generation = routeGeneration
        do {
            try await listener.connect(request)
            // The last facts about the target led to a failure, or there were none.
            records[id]?.refusal = nil
            if request.attempt != nil || records[id]?.state != .active { await refreshTarget(of: id) }
        } catch let failure as DialError where failure.reason == .refused && request.racing == nil {
            guard generation == routeGeneration else { return }
            await note(failure, of: id)
        } catch let failure as DialError {
            // A result from before a route change is ignored.
            // During a race the first connect goes on.
            let isAbsent =
                request.racing == nil && [.deviceAbsent, .usbmuxdAbsent, .noRoute].contains(failure.reason)
            guard isAbsent, generation == routeGeneration, records[id]?.acceptError == nil else {
                return
            }
            set(id, .waiting(reason: failure.description))
        } catch {}
    }

    private func handle(_ event: TunnelEvent, for id: String) async {
        switch event {
        case .listening(let acceptError?):
            records[id]?.acceptError = acceptError
            set(id, .failed(reason: "it accepts no clients: \(acceptError)"))
        case .listening(nil):
            records[id]?.acceptError = nil
            await refreshTarget(of: id)
        case .connected(let generation):
            records[id]?.refusal = nil
            guard generation == routeGeneration, records[id]?.acceptError == nil else { return }
            set(id, .active)
        case .outOfDescriptors(let reason):
            dependencies.logger.warning(
                "out of descriptors; clients wait in the accept queue",
                metadata: ["tunnel": "\(id)", "reason": "\(reason)"]
            )
        case .fallback, .retry: break
        }
    }
}

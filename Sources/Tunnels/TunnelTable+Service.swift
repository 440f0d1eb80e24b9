import Model
import ServiceLifecycle
import SystemIO

/// The running table: serves listeners, retries local addresses, and keeps the states current.
extension TunnelTable: Service {
    /// Serves every tunnel until graceful shutdown, then closes all listeners and connections.
    package func run() async throws {
        await withDiscardingTaskGroup { group in
            for await job in jobs.stream.cancelOnGracefulShutdown() {
                group.addTask { await self.perform(job) }
            }
            await stop()
            group.cancelAll()
        }
    }

    /// Resolves the targets of all tunnels again. Called after devices or endpoints have changed.
    ///
    /// Calls during a refresh cause one more refresh, however many there are.
    package func refreshTargets() async {
        dependencies.routeGeneration.increment()
        guard !isRefreshing else { return }
        isRefreshing = true
        defer { isRefreshing = false }
        var done: UInt64
        repeat {
            done = dependencies.routeGeneration.current
            for id in records.ids { await refreshTarget(of: id) }
            await streams.closeForbidden()
        } while done != dependencies.routeGeneration.current
    }

    /// Resolves a tunnel's target and sets its state accordingly.
    func refreshTarget(of id: String) async {
        guard let record = records[id], record.listener != nil else { return }
        let asked = dependencies.routeGeneration.current
        let state: Tunnel.State
        var isForbidden = false
        var target: TargetSnapshot?
        do {
            target = try await dependencies.target(of: record)
            state = .active
        } catch {
            state = .waiting(reason: error.description)
            isForbidden = error.reason == .forbidden
        }
        // An older result must not overwrite a newer one. The newer refresh sets the state.
        guard asked == dependencies.routeGeneration.current else { return }
        record.listener?.setTarget(target)
        if records[id]?.acceptError == nil { set(id, state) }
        // The revoked route may still have open connections.
        if isForbidden { await record.listener?.closeNetworkConnections() }
    }

    /// Sets a tunnel's state and publishes a change.
    func set(_ id: String, _ state: Tunnel.State) {
        guard let old = records[id]?.state, old != state else { return }
        records[id]?.state = state
        if let tunnel = records[id]?.tunnel { dependencies.feed.send(.changed(tunnel)) }
    }

    private nonisolated func perform(_ job: Job) async {
        switch job {
        case .serve(let listener):
            await listener.serve { await self.handle($0, from: listener) }
        case .retry(let id):
            repeat {
                guard (try? await dependencies.clock.sleep(for: dependencies.limits.listenRetryInterval)) != nil else {
                    return
                }
            } while await !retry(id)
        }
    }

    /// Sets the tunnel's state from a dial, which is more reliable than the resolver. A result from before a route
    /// change is ignored.
    private func handle(_ result: TunnelListener.Report, from listener: TunnelListener) async {
        let id = listener.id
        guard records[id]?.listener === listener else { return }
        switch result {
        case .listening(let acceptError?):
            records[id]?.acceptError = acceptError
            set(id, .failed(reason: "it accepts no clients: \(acceptError)"))
        case .outdated:
            await refreshTarget(of: id)
        case .listening(nil):
            records[id]?.acceptError = nil
            await refreshTarget(of: id)
        case .connected:
            if records[id]?.acceptError == nil { set(id, .active) }
        case .failed(let failure, let count):
            let isAbsent = [.deviceAbsent, .usbmuxdAbsent, .noRoute].contains(failure.reason)
            guard isAbsent, count == dependencies.routeGeneration.current, records[id]?.acceptError == nil else {
                return
            }
            set(id, .waiting(reason: failure.description))
        }
    }
}

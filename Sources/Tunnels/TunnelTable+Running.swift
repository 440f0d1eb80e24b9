import Logging
import Model
import ServiceLifecycle

/// What goes on while the table runs: doors are served, addresses tried again, states kept true.
extension TunnelTable: Service {
    /// Serves every tunnel until the graceful shutdown; then nothing is listened on and every connection is cut.
    package func run() async throws {
        await withDiscardingTaskGroup { group in
            for await job in jobs.stream.cancelOnGracefulShutdown() {
                group.addTask { await self.perform(job) }
            }
            await stop()
            group.cancelAll()
        }
    }

    /// Looks again whether the tunnels' targets are there. To be called when devices or endpoints have changed.
    ///
    /// Calls that come while one is under way make it look once more, however many they are.
    package func reconsider() async {
        news.arrive()
        guard !isReconsidering else { return }
        isReconsidering = true
        defer { isReconsidering = false }
        var done: UInt64
        repeat {
            done = news.count
            for id in records.keys { await consider(id) }
        } while done != news.count
    }

    /// Asks where a tunnel's target is, and sets its state after the answer.
    func consider(_ id: String) async {
        guard let record = records[id], record.door != nil else { return }
        let asked = news.count
        let state: Tunnel.State
        var isForbidden = false
        do {
            let routes = try await dialer.resolver.routes(to: record.spec.target)
            state =
                routes.isEmpty
                ? .waiting(reason: TargetDialer.noRoute(to: record.spec.target).description) : .active
        } catch {
            state = .waiting(reason: error.description)
            isForbidden = error.reason == .forbidden
        }
        // An older answer must not overwrite a newer one; whoever began the new round asks again.
        guard asked == news.count, records[id]?.fault == nil else { return }
        set(id, state)
        // Whoever was reached may be another one now.
        if isForbidden { await record.door?.sever() }
    }

    func set(_ id: String, _ state: Tunnel.State) {
        guard let old = records[id]?.state, old != state else { return }
        records[id]?.state = state
        if let tunnel = records[id]?.tunnel { feed.send(.changed(tunnel)) }
    }

    private nonisolated func perform(_ job: Job) async {
        switch job {
        case .serve(let door):
            await door.serve { await self.note($0, of: door) }
        case .retry(let id):
            repeat {
                guard (try? await clock.sleep(for: limits.retry)) != nil else { return }
            } while await !retry(id)
        }
    }

    /// A dial knows better than the resolver whether a target is there, unless there was news while it was under way.
    private func note(_ report: TunnelListener.Report, of door: TunnelListener) async {
        let id = door.id
        guard records[id]?.door === door else { return }
        switch report {
        case .listening(let fault?):
            records[id]?.fault = fault
            set(id, .failed(reason: "it takes no clients: \(fault)"))
        case .listening(nil):
            records[id]?.fault = nil
            await consider(id)
        case .connected:
            if records[id]?.fault == nil { set(id, .active) }
        case .failed(let failure, let count):
            let isAbsent = [.deviceAbsent, .usbmuxdAbsent, .noRoute].contains(failure.reason)
            guard isAbsent, count == news.count, records[id]?.fault == nil else { return }
            set(id, .waiting(reason: failure.description))
        }
    }
}

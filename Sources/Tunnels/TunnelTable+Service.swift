import FoundationEssentials
import Logging
import Model
import ServiceLifecycle
import Synchronization
import SystemIO

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

/// One tunnel as its table knows it.
struct TunnelEntry: Sendable {
    let id: String
    let spec: TunnelSpec
    /// The user who asked for it.
    let owner: UInt32
    let since: Date
    let tally: TunnelMetrics
    /// Nil while the local address is not to be had.
    var door: TunnelListener?
    var state: Tunnel.State
    /// Why its listening socket takes no clients; nil where it does.
    var fault: String?
    /// The port that `tcp:0` had in an earlier run.
    var port: UInt16?

    var tunnel: Tunnel {
        Tunnel(
            id: id,
            spec: spec,
            owner: owner,
            state: state,
            bound: bound,
            statistics: tally.statistics,
            since: since
        )
    }

    var entry: PersistedTunnels.Entry {
        PersistedTunnels.Entry(id: id, spec: spec, owner: owner, port: chosenPort, since: since)
    }

    /// The address with the port that it really has.
    var local: ListenAddress {
        guard case .tcp(let host, 0) = spec.local, let chosenPort else { return spec.local }
        return .tcp(host: host, port: chosenPort)
    }

    private var bound: [ListenAddress] {
        (door?.addresses ?? []).map { address in
            address.port.map { .tcp(host: address.host, port: $0) } ?? .unix(path: address.host)
        }
    }

    private var chosenPort: UInt16? {
        guard case .tcp(_, 0) = spec.local else { return nil }
        return door?.addresses.first?.port ?? port
    }
}

/// Counts the times that the routes to tunnels' targets may have changed, so that an answer about an older state of them
/// is known to be old.
final class RouteGeneration: Sendable {
    private let arrivals = Atomic<UInt64>(0)

    var count: UInt64 { arrivals.load(ordering: .acquiring) }

    func arrive() { arrivals.wrappingAdd(1, ordering: .releasing) }
}

/// A tunnel that is asked for, before anything has changed for it.
struct TunnelPlan {
    let spec: TunnelSpec
    /// The tunnel on its local address, which it replaces.
    let old: TunnelEntry?
    /// Whether the old one is the very same.
    let isThere: Bool
    /// Empty where the old one has the address.
    let listeners: [Listener]

    init(spec: TunnelSpec, old: TunnelEntry?, owner: UInt32, listeners: [Listener]) {
        self.spec = spec
        self.old = old
        self.listeners = listeners
        isThere = old.map { $0.spec == spec && $0.owner == owner && $0.door != nil } ?? false
    }

    /// As it is kept.
    func entry(id: String, _ owner: UInt32) -> PersistedTunnels.Entry {
        PersistedTunnels.Entry(id: id, spec: spec, owner: owner, port: listeners.first?.address.port, since: Date())
    }
}

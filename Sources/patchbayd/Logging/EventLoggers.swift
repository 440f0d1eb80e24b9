import Discovery
import Logging
import Model
import Registry
import ServiceLifecycle
import SystemIO
import Tunnels

/// Logs a line for each advertisement that is published, withdrawn or rejected.
struct AdvertisementLogger: Service {
    let bonjour: BonjourSource
    let logger: Logger

    func run() async throws {
        await cancelWhenGracefulShutdown {
            var known: [String: Advertisement] = [:]
            for await _ in bonjour.advertisementChanges() {
                let now = Dictionary(await bonjour.advertisements().map { ($0.id, $0) }) { one, _ in one }
                for (id, advertisement) in now.sorted(by: { $0.key < $1.key }) {
                    log(advertisement, before: known[id])
                }
                for id in known.keys.sorted() where now[id] == nil {
                    logger.info("advertisement withdrawn", metadata: ["id": "\(id)"])
                }
                known = now
            }
        }
    }

    private func log(_ advertisement: Advertisement, before: Advertisement?) {
        guard before?.state != advertisement.state || before?.publishedName != advertisement.publishedName
        else { return }
        var metadata: Logger.Metadata = [
            "id": "\(advertisement.id)", "name": "\(advertisement.publishedName)", "type": "\(advertisement.spec.type)",
            "port": "\(advertisement.spec.port)",
        ]
        if let reason = advertisement.reason { metadata["reason"] = "\(reason)" }
        switch advertisement.state {
        case .published: logger.info("advertisement published", metadata: metadata)
        case .failed: logger.notice("advertisement failed", metadata: metadata)
        default: break
        }
    }
}

/// Logs a line for each local endpoint that is new, removed, moved, or in another state.
///
/// `LineLimiter` limits the lines of frequently changing endpoints; one line then has the number of suppressed changes.
struct EndpointLogger: Service {
    let registry: EndpointRegistry
    let logger: Logger
    /// The window of the line limiter.
    var window: Duration = .seconds(60)

    func run() async throws {
        try? await cancelWhenGracefulShutdown {
            let lines = LineLimiter<EndpointID>(window: window)
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await logChanges(lines) }
                group.addTask { await lines.reportOmitted(clock: ContinuousClock(), log) }
                try await group.next()
                group.cancelAll()
            }
        }
    }

    /// Logs the numbers of suppressed lines.
    private func log(_ expired: LineLimiter<EndpointID>.Expired) {
        for (id, count) in expired.omitted {
            logger.info("endpoint changed often", metadata: ["id": "\(id)", "changes not shown": "\(count)"])
        }
        if expired.beyondTotal > 0 {
            logger.info("many endpoints changed", metadata: ["changes not shown": "\(expired.beyondTotal)"])
        }
    }

    /// Logs the registry's changes until cancellation.
    private func logChanges(_ lines: LineLimiter<EndpointID>) async throws {
        // Endpoints of an earlier run are not logged as new.
        var known = Dictionary(await registry.endpoints.map { ($0.id, $0) }) { one, _ in one }
        while !Task.isCancelled {
            let (endpoints, changes) = await registry.changes()
            for endpoint in endpoints {
                log(endpoint, before: known.updateValue(endpoint, forKey: endpoint.id), limiter: lines)
            }
            for await change in changes {
                let endpoint = change.endpoint
                if change.kind == .removed {
                    known[endpoint.id] = nil
                    guard lines.admit(endpoint.id, at: .now) else { continue }
                    logger.info("endpoint removed", metadata: ["id": "\(endpoint.id)"])
                } else {
                    log(endpoint, before: known.updateValue(endpoint, forKey: endpoint.id), limiter: lines)
                }
            }
            try Task.checkCancellation()
        }
    }

    private func log(_ endpoint: Endpoint, before: Endpoint?, limiter lines: LineLimiter<EndpointID>) {
        guard let message = Self.message(for: endpoint, before: before), lines.admit(endpoint.id, at: .now)
        else { return }
        var metadata: Logger.Metadata = ["id": "\(endpoint.id)"]
        if before == nil {
            metadata["kind"] = "\(endpoint.kind)"
            if !endpoint.app.isEmpty { metadata["app"] = "\(endpoint.app)" }
        }
        if let route = endpoint.routes.first { metadata["route"] = "\(route)" }
        if let found = endpoint.routes.lazy.compactMap(\.mismatch).first { metadata["found"] = "\(found)" }
        if let reason = endpoint.reason { metadata["reason"] = "\(reason)" }
        logger.info(message, metadata: metadata)
    }

    /// The log message for a change; nil for a change that is not logged.
    static func message(for endpoint: Endpoint, before: Endpoint?) -> Logger.Message? {
        guard let before else { return "endpoint new" }
        if before.state != endpoint.state {
            return switch endpoint.state {
            case .online: "endpoint online"
            case .suspect: "endpoint suspect"
            case .offline: "endpoint offline"
            case .blocked: "endpoint blocked"
            }
        }
        if before.approval != endpoint.approval {
            return switch endpoint.approval {
            case .approved: "endpoint approved"
            case .pending: "endpoint not approved any more"
            case .changed where endpoint.routes.contains { $0.mismatch != nil }:
                "another server answered at the address of the endpoint; approve it again to reach it"
            case .changed: "endpoint moved to another host; approve it again to reach it"
            }
        }
        guard let old = before.routes.first, let new = endpoint.routes.first, old != new else { return nil }
        return "endpoint moved"
    }
}

/// Logs opened and removed tunnels, and for each tunnel the first connection failure of each reason.
struct TunnelLogger: Service {
    let tunnels: TunnelTable
    let logger: Logger

    private struct Failure: Hashable {
        let tunnel: String
        let reason: DialError.Reason
    }

    func run() async throws {
        try? await cancelWhenGracefulShutdown {
            var logged: Set<Failure> = []
            for tunnel in await tunnels.list() { log("tunnel restored", tunnel) }
            // The stream of a slow subscriber ends. The next one continues from here; `patchbay tunnels` has the
            // current state.
            while !Task.isCancelled {
                for await event in await tunnels.events() { log(event, &logged) }
                try Task.checkCancellation()
                await Task.yield()
            }
        }
    }

    private func log(_ event: TunnelChange, _ logged: inout Set<Failure>) {
        switch event {
        case .opened(let tunnel): log("tunnel opened", tunnel)
        case .removed(let id):
            logged = logged.filter { $0.tunnel != id }
            logger.info("tunnel removed", metadata: ["id": "\(id)"])
        case .changed(let tunnel):
            if case .failed = tunnel.state { log("tunnel does not listen", tunnel) }
            // The target is back: the next failure is logged again.
            if case .active = tunnel.state { logged = logged.filter { $0.tunnel != tunnel.id } }
        case .connectionFailed(let id, let failure):
            guard logged.insert(Failure(tunnel: id, reason: failure.reason)).inserted else { return }
            logger.info(
                "connections through a tunnel fail",
                metadata: ["id": "\(id)", "reason": "\(failure.reason.rawValue)", "detail": "\(failure)"]
            )
        }
    }

    private func log(_ message: Logger.Message, _ tunnel: Tunnel) {
        let addresses = tunnel.listenAddresses.map(\.description).joined(separator: " ")
        let bound = addresses.isEmpty ? "\(tunnel.spec.local)" : addresses
        let target =
            switch tunnel.spec.target {
            case .device(let udid, let port): "\(Route.usb(USBRoute(udid: udid, port: port)))"
            case .endpoint(let id): id.text
            }
        var metadata: Logger.Metadata = [
            "id": "\(tunnel.id)", "local": "\(bound)", "target": "\(target)", "owner": "\(tunnel.owner)",
        ]
        if let replaced = tunnel.replaced { metadata["replaced"] = "\(replaced)" }
        if let reason = tunnel.state.reason, !reason.isEmpty { metadata["reason"] = "\(reason)" }
        logger.info(message, metadata: metadata)
    }
}

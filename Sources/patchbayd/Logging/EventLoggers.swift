import Discovery
import Logging
import Model
import Registry
import ServiceLifecycle
import Tunnels

/// Tells the operator what this machine advertises: a line for each name that is published, withdrawn or refused.
struct AdvertisementLogger: Service {
    let bonjour: BonjourSource
    let logger: Logger

    func run() async throws {
        await cancelWhenGracefulShutdown {
            var known: [String: Advertisement] = [:]
            for await _ in bonjour.advertisementChanges() {
                let now = Dictionary(await bonjour.advertisements().map { ($0.id, $0) }) { one, _ in one }
                for (id, advertisement) in now.sorted(by: { $0.key < $1.key }) {
                    tell(of: advertisement, before: known[id])
                }
                for id in known.keys.sorted() where now[id] == nil {
                    logger.info("advertisement withdrawn", metadata: ["id": "\(id)"])
                }
                known = now
            }
        }
    }

    private func tell(of advertisement: Advertisement, before: Advertisement?) {
        guard before?.state != advertisement.state || before?.finalName != advertisement.finalName else { return }
        var metadata: Logger.Metadata = [
            "id": "\(advertisement.id)", "name": "\(advertisement.finalName)", "type": "\(advertisement.spec.type)",
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

/// Tells the operator what becomes of endpoints: a line for each that is new, in another state, elsewhere, or forgotten.
///
/// An endpoint that changes all the time gets a few lines a minute, and then one line with the number of the others.
struct EndpointLogger: Service {
    let registry: EndpointRegistry
    let logger: Logger
    /// The time in which lines are counted.
    var window: Duration = .seconds(60)

    func run() async throws {
        try? await cancelWhenGracefulShutdown {
            let lines = LineLimiter<EndpointID>(window: window)
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await follow(lines) }
                group.addTask {
                    // Nothing else tells that a time is over in which lines were left out.
                    for await _ in lines.begun {
                        repeat { try await Task.sleep(for: window) } while tell(lines.takeExpired(at: .now))
                    }
                }
                try await group.next()
                group.cancelAll()
            }
        }
    }

    /// - Returns: Whether there are times that are not over.
    private func tell(_ expired: LineLimiter<EndpointID>.Expired) -> Bool {
        for (id, count) in expired.omitted {
            logger.info("endpoint changed often", metadata: ["id": "\(id)", "changes not shown": "\(count)"])
        }
        if expired.beyondTotal > 0 {
            logger.info("many endpoints changed", metadata: ["changes not shown": "\(expired.beyondTotal)"])
        }
        return !expired.isLast
    }

    private func follow(_ lines: LineLimiter<EndpointID>) async throws {
        // What an earlier run left is no news.
        var known = Dictionary(await registry.endpoints.map { ($0.id, $0) }) { one, _ in one }
        while !Task.isCancelled {
            let (start, changes) = await registry.changes()
            if case .snapshot(let endpoints, _) = start {
                for endpoint in endpoints {
                    tell(of: endpoint, before: known.updateValue(endpoint, forKey: endpoint.id), lines)
                }
            }
            for await change in changes {
                let endpoint = change.endpoint
                if change.kind == .removed {
                    known[endpoint.id] = nil
                    guard lines.admit(endpoint.id, at: .now) else { continue }
                    logger.info("endpoint removed", metadata: ["id": "\(endpoint.id)"])
                } else {
                    tell(of: endpoint, before: known.updateValue(endpoint, forKey: endpoint.id), lines)
                }
            }
            try Task.checkCancellation()
        }
    }

    private func tell(of endpoint: Endpoint, before: Endpoint?, _ lines: LineLimiter<EndpointID>) {
        guard let news = Self.news(of: endpoint, before: before), lines.admit(endpoint.id, at: .now) else { return }
        var metadata: Logger.Metadata = ["id": "\(endpoint.id)"]
        if before == nil {
            metadata["kind"] = "\(endpoint.kind)"
            if !endpoint.app.isEmpty { metadata["app"] = "\(endpoint.app)" }
        }
        if let route = endpoint.routes.first { metadata["route"] = "\(route)" }
        if let reason = endpoint.reason { metadata["reason"] = "\(reason)" }
        logger.info(news, metadata: metadata)
    }

    /// What an operator is told of a change; nil when it is nothing to them.
    static func news(of endpoint: Endpoint, before: Endpoint?) -> Logger.Message? {
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
            case .discovered: "endpoint not approved any more"
            case .changed: "endpoint is not where it was approved, and not reached"
            }
        }
        guard let old = before.routes.first, let new = endpoint.routes.first, old != new else { return nil }
        return "endpoint moved"
    }
}

/// Tells the operator which tunnels stand, and of each why connections fail: the first of every reason, not each of them.
struct TunnelLogger: Service {
    let tunnels: TunnelTable
    let logger: Logger

    private struct Failure: Hashable {
        let tunnel: String
        let reason: DialError.Reason
    }

    func run() async throws {
        try? await cancelWhenGracefulShutdown {
            var told: Set<Failure> = []
            for tunnel in await tunnels.list() { tell("tunnel restored", tunnel) }
            // A follower that was too slow is let go and goes on from here: what it missed is in `patchbay tunnels`.
            while !Task.isCancelled {
                for await event in await tunnels.events() { tell(event, &told) }
                try Task.checkCancellation()
                await Task.yield()
            }
        }
    }

    private func tell(_ event: TunnelEvent, _ told: inout Set<Failure>) {
        switch event {
        case .opened(let tunnel): tell("tunnel opened", tunnel)
        case .removed(let id):
            told = told.filter { $0.tunnel != id }
            logger.info("tunnel removed", metadata: ["id": "\(id)"])
        case .changed(let tunnel):
            if case .failed = tunnel.state { tell("tunnel does not listen", tunnel) }
            // Its target is back: the next failure is news again.
            if case .active = tunnel.state { told = told.filter { $0.tunnel != tunnel.id } }
        case .connectionFailed(let id, let failure):
            guard told.insert(Failure(tunnel: id, reason: failure.reason)).inserted else { return }
            logger.info(
                "connections through a tunnel fail",
                metadata: ["id": "\(id)", "reason": "\(failure.reason.rawValue)", "detail": "\(failure)"]
            )
        }
    }

    private func tell(_ what: Logger.Message, _ tunnel: Tunnel) {
        let bound =
            tunnel.bound.isEmpty ? "\(tunnel.spec.local)" : tunnel.bound.map(\.description).joined(separator: " ")
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
        logger.info(what, metadata: metadata)
    }
}

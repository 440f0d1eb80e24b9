import Logging
import Model
import Registry
import ServiceLifecycle

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

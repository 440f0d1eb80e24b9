package import Logging
import Model
import ServiceLifecycle
import SystemIO

/// Logs a line for each local endpoint that is new, removed, moved, or in another state.
///
/// `LineLimiter` limits the lines of frequently changing endpoints; one line then has the number of suppressed changes.
package struct EndpointLogger: Service {
    private let registry: EndpointRegistry
    private let logger: Logger
    /// The window of the line limiter.
    private let window: Duration

    package init(of registry: EndpointRegistry, logger: Logger, window: Duration = .seconds(60)) {
        self.registry = registry
        self.logger = logger
        self.window = window
    }

    package func run() async throws {
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
            case .denied: "endpoint denied"
            case .changed where endpoint.routes.contains { $0.mismatch != nil }:
                "another server answered at the address of the endpoint; approve it again to reach it"
            case .changed: "endpoint moved to another host; approve it again to reach it"
            }
        }
        guard let old = before.routes.first, let new = endpoint.routes.first, old != new else { return nil }
        return "endpoint moved"
    }
}

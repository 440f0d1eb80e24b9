import AccessControl
import FoundationEssentials
import HummingbirdCore
import Metrics
import Model
import NIOCore

/// `/metrics`: the metrics in Prometheus' text format.
enum MetricsRoutes {
    /// Answers an owner, and a grant that may see every endpoint. The metrics count objects and name none of them.
    @Sendable static func show(_ request: APIRequest) async throws -> APIResponse {
        guard request.principal.canSeeAllEndpoints else {
            throw Problem(.forbidden, "the metrics are about all endpoints, and the grant is limited to some")
        }
        await StateMetrics.update(request.services)
        return .body(
            ByteBuffer(string: request.services.metrics.text),
            type: "text/plain; version=0.0.4; charset=utf-8"
        )
    }
}

/// The metrics of the current state, which are read at each request.
enum StateMetrics {
    static func update(_ services: APIServices) async {
        let status = await services.status()
        set(.build, 1, [("version", status.version)])
        set(.start, status.startedAt.timeIntervalSince1970.rounded())
        for state in ["online", "suspect", "offline", "blocked"] {
            set(.endpoints, Double(status.endpoints[state] ?? 0), [("state", state)])
        }
        set(.devices, Double(status.devices))
        set(.tunnels, Double(status.tunnels))
        set(.streams, Double(status.streams ?? 0))
        set(.leases, Double(services.leases.count))
        set(.storageProblems, Double(await services.storageProblems().count))
        if let certificates = status.remote?.certificates {
            let ends =
                [("broker", certificates.expiresAt)]
                + (certificates.configured.map { [("configured", $0.expiresAt)] } ?? [])
            for (name, end) in ends {
                set(.certificateEnd, end.timeIntervalSince1970.rounded(), [("certificate", name)])
            }
        }
        for part in BrokerPart.allCases {
            set(.degraded, status.degradedParts.contains(part) ? 1 : 0, [("part", part.rawValue)])
        }
        for source in status.sources where source.state != .off {
            set(.sources, source.state == .ok ? 1 : 0, [("source", source.name)])
        }
    }

    private static func set(_ metric: MetricDefinition, _ value: Double, _ dimensions: [(String, String)] = []) {
        Gauge(label: metric.name, dimensions: dimensions).record(value)
    }
}

/// The metrics of refused requests.
enum RefusalMetrics {
    static func refused(_ problem: Problem) {
        Counter(label: MetricDefinition.refusals.name, dimensions: [("reason", problem.code.rawValue)]).increment()
        guard problem.code == .limit || problem.code == .slowDown else { return }
        let limit = problem.code == .limit ? "api" : "attempts"
        Counter(label: MetricDefinition.limits.name, dimensions: [("limit", limit)]).increment()
    }
}

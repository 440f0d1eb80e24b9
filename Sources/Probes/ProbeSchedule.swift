import FoundationEssentials
import Model

/// When each endpoint is probed next.
///
/// One that is online is asked seldom; one that failed is asked again at once, so that three failures fit in 15 s even when
/// each takes the kernel its full 3 s to notice a dead host.
struct ProbeSchedule: Sendable {
    static let whileOnline = Duration.seconds(15)
    static let whileSuspect = Duration.seconds(2)

    private var due: [EndpointID: Duration] = [:]

    /// The endpoints to probe now, each marked as asked.
    ///
    /// - Parameters:
    ///   - endpoints: Everything that stands in the registry.
    ///   - now: The time since any fixed moment.
    /// - Returns: Those that are due.
    mutating func take(from endpoints: [Endpoint], at now: Duration) -> [Endpoint] {
        let probed = endpoints.filter { Self.isProbed($0) }
        var next: [EndpointID: Duration] = [:]
        var taken: [Endpoint] = []
        for endpoint in probed {
            let pause = endpoint.state == .suspect ? Self.whileSuspect : Self.whileOnline
            // An endpoint that has just become suspect does not wait for the time that was set while it was online.
            let at = min(due[endpoint.id] ?? now, now + pause)
            if at <= now { taken.append(endpoint) }
            next[endpoint.id] = at <= now ? now + pause : at
        }
        due = next
        return taken
    }

    /// Phones' ports are watched where they are found. An address that no owner approved is not dialled.
    private static func isProbed(_ endpoint: Endpoint) -> Bool {
        endpoint.state != .blocked && endpoint.approvedRoutes.contains { $0.route.isNetwork }
    }
}

package import AccessControl
package import Apps
import Client
package import Model

/// Calls to the apps of this broker, and to those of other hosts through their brokers.
package struct TeamAppCaller: AppCaller {
    private let local: any AppCaller
    private let proxy: TeamProxy

    package init(_ local: any AppCaller, proxy: TeamProxy) {
        (self.local, self.proxy) = (local, proxy)
    }

    package func tools(of endpoint: Endpoint, for principal: Principal) async throws(AppError) -> AppToolList {
        guard let host = endpoint.id.host else { return try await local.tools(of: endpoint, for: principal) }
        let list = try await Self.answer(of: host) {
            try await proxy.broker(of: host, for: principal).tools.list(of: endpoint.id.onItsHost)
        }
        let staleness = list.reason.map { reason in
            let hint = list.hint.map(TeamProxy.sanitized)
            return AppError.refused(by: host, Problem(.unavailable, TeamProxy.sanitized(reason), hint: hint))
        }
        return AppToolList(tools: list.tools, staleness: staleness, hasChanged: list.hasChanged)
    }

    package func call(_ call: ToolCall, of principal: Principal) async throws(AppError) -> JSONObject {
        guard let host = call.endpoint.id.host else { return try await local.call(call, of: principal) }
        let call = try await call.leased(ContinuousClock())
        let timeout = TeamProxy.timeout(ofCall: call.timeout, wait: call.wait)
        return try await Self.answer(of: host) {
            try await proxy.broker(of: host, for: principal, within: timeout).tools.call(
                call.tool,
                of: call.endpoint.id.onItsHost,
                arguments: call.arguments,
                wait: Int(call.wait.components.seconds),
                timeout: call.timeout.map { max(1, Int($0.components.seconds)) },
                maxPixels: call.maxPixels,
                imageFormat: call.imageFormat?.rawValue,
                trace: call.trace.meta ?? call.trace.header
            )
        }
    }

    package func disconnect(_ id: EndpointID) async { await local.disconnect(id) }

    package func toolCount(of endpoint: Endpoint) async -> Int? {
        endpoint.isOnOtherHost ? nil : await local.toolCount(of: endpoint)
    }

    package func accepts(_ secret: EndpointSecret, at endpoint: Endpoint, for principal: Principal) async -> Bool? {
        endpoint.isOnOtherHost ? nil : await local.accepts(secret, at: endpoint, for: principal)
    }

    package func requiresNoSecret(_ endpoint: Endpoint, for principal: Principal) async -> Bool {
        endpoint.isOnOtherHost ? false : await local.requiresNoSecret(endpoint, for: principal)
    }

    package func isOpen(_ endpoint: Endpoint, for principal: Principal) async -> Bool? {
        endpoint.isOnOtherHost ? nil : await local.isOpen(endpoint, for: principal)
    }

    package func wantsSecret(_ endpoint: Endpoint) -> Bool {
        !endpoint.isOnOtherHost && local.wantsSecret(endpoint)
    }

    package func requiresSecret(_ endpoint: Endpoint) -> Bool {
        !endpoint.isOnOtherHost && local.requiresSecret(endpoint)
    }

    package func describingDeviations(_ endpoints: [Endpoint]) -> [Endpoint] {
        local.describingDeviations(endpoints)
    }

    /// Returns the answer of another host's broker to a request for an app.
    private static func answer<Value>(
        of host: HostName,
        _ request: () async throws -> Value
    ) async throws(AppError) -> Value {
        do {
            return try await request()
        } catch let problem as Problem {
            throw .refused(by: host, problem)
        } catch let error as HostError {
            throw error.unknownResult ?? .refused(by: host, error.problem)
        } catch is CancellationError {
            throw .responseLost
        } catch {
            throw .invalidResponse(
                "something that this version of Patchbay cannot read; install one version on all hosts"
            )
        }
    }
}

package import AccessControl
package import Apps
package import Model
import NIOCore

/// Calls to the apps of this broker, and to those of other hosts through their brokers.
package struct TeamAppCaller: AppCaller {
    private let local: any AppCaller
    private let proxy: TeamProxy

    package init(_ local: any AppCaller, proxy: TeamProxy) {
        (self.local, self.proxy) = (local, proxy)
    }

    package func tools(of endpoint: Endpoint, for principal: Principal) async throws(AppError) -> AppToolList {
        guard let host = endpoint.id.host else { return try await local.tools(of: endpoint, for: principal) }
        let request = HostRequest(method: "GET", target: Self.path(endpoint.id, "tools"))
        let answer = try await json(of: request, at: host, for: principal)
        guard let tools = answer["tools"]?.array else { throw Self.unreadable }
        var staleness: AppError?
        if let reason = answer["reason"]?.string.map(TeamProxy.sanitized) {
            let hint = answer["hint"]?.string.map(TeamProxy.sanitized)
            staleness = .refused(by: host, Problem(.unavailable, reason, hint: hint))
        }
        return AppToolList(
            tools: tools.compactMap(\.object),
            staleness: staleness,
            hasChanged: answer["changed"]?.bool ?? false
        )
    }

    package func call(_ call: ToolCall, of principal: Principal) async throws(AppError) -> JSONObject {
        guard let host = call.endpoint.id.host else { return try await local.call(call, of: principal) }
        var body: JSONObject = [
            "tool": .string(call.tool), "arguments": .object(call.arguments),
            "waitSeconds": .number(JSONNumber(Int(call.wait.components.seconds))),
            "maxPixels": .number(JSONNumber(call.maxPixels)),
        ]
        if let timeout = call.timeout {
            body["timeoutSeconds"] = .number(JSONNumber(max(1, Int(timeout.components.seconds))))
        }
        if let format = call.imageFormat { body["imageFormat"] = .string(format.rawValue) }
        let request = HostRequest(
            method: "POST",
            target: Self.path(call.endpoint.id, "call"),
            headers: [("Content-Type", "application/json")],
            body: JSON.object(body).bytes,
            timeout: HostRequest.timeout(ofCall: call.timeout, wait: call.wait)
        )
        let answer = try await json(of: request, at: host, for: principal)
        guard let result = answer["result"]?.object else { throw Self.unreadable }
        return result
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

    private static func path(_ id: EndpointID, _ verb: String) -> String { "/v1/endpoints/\(id.onItsHost)/\(verb)" }

    private static let unreadable = AppError.invalidResponse(
        "something that this version of Patchbay cannot read; install one version on all hosts"
    )

    /// Sends a request to the broker of a host, and returns the document of its response.
    private func json(
        of request: HostRequest,
        at host: HostName,
        for principal: Principal
    ) async throws(AppError) -> JSON {
        do {
            let bytes = try await proxy.bytes(of: request, to: host, for: principal)
            return try await JSON.parse(bytes, maxDepth: JSON.maxBrokerDepth)
        } catch let problem as Problem {
            throw .refused(by: host, problem)
        } catch let error as HostError {
            throw error.unknownResult ?? .refused(by: host, error.problem)
        } catch is CancellationError {
            throw .responseLost
        } catch {
            throw Self.unreadable
        }
    }
}

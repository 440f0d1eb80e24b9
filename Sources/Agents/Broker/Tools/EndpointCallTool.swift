import AccessControl
import Apps
import Model
import SystemIO

/// Calls a tool of an app.
struct EndpointCallTool: BrokerTool {
    private static let endpoint = ToolParameter.endpoint
    private static let name = ToolParameter.text("name", "tool")
    private static let arguments = ToolParameter.object("arguments")
    private static let wait = ToolParameter.number("waitSeconds", in: 0...60, "for an offline app; default 10")
    private static let timeout = ToolParameter.number("timeoutSeconds", in: 1...120, "total; default 15")
    /// The wait time for a lease without `timeoutSeconds`.
    private static let standardWait = Duration.seconds(15)
    /// The time limit of the list of an app that was never listed.
    private static let listLimit = Duration.seconds(2)
    private static let maxPixels = ToolParameter.number(
        "maxPixels",
        in: 0...4_096,
        "image edge, default 1568; 0: original"
    )

    private static let lease = ToolParameter.number(
        "lease",
        in: 0...LeaseSpec.maxSeconds,
        "exclusive seconds; 0 ends it"
    )

    let definition = ToolDefinition(
        name: "endpoint_call",
        description: "Calls a tool of an app; waits while it restarts.",
        scope: .endpointCall,
        required: [Self.endpoint.property, Self.name.property],
        optional: [
            Self.arguments.property, Self.wait.property, Self.timeout.property, Self.maxPixels.property,
            Self.lease.property,
        ],
        annotations: ["openWorldHint": true]
    )
    let directory: EndpointDirectory
    let apps: any AppCaller
    let leases: any LeaseAuthority
    let clock: any Clock<Duration>

    func call(_ request: ToolRequest, for principal: Principal) async throws(ToolError) -> ToolResult {
        let endpoint = try await directory.endpoint(of: request, for: principal)
        guard let name = try request[Self.name], !name.isEmpty else {
            throw ToolError("name is missing: endpoint_tools lists the tools of \(endpoint.id)")
        }
        let lease = try request[Self.lease]
        var timeout: Duration? = try request[Self.timeout].map { .seconds($0) }
        timeout = await listIfUnknown(endpoint, principal, within: timeout)
        let result: Result<ToolResult, ToolError>
        do throws(ToolError) {
            result = .success(try await self.call(name, of: endpoint, request, for: principal, within: timeout, lease))
        } catch { result = .failure(error) }
        // Also after a failed call: the agent asked for the end.
        if lease == 0 { await leases.release(endpoint, by: principal) }
        return try result.get()
    }

    private func call(
        _ name: String,
        of endpoint: Endpoint,
        _ request: ToolRequest,
        for principal: Principal,
        within timeout: Duration?,
        _ lease: Int?
    ) async throws(ToolError) -> ToolResult {
        var takeLease: (@Sendable () async throws(AppError) -> Void)?
        if let lease, lease > 0 {
            takeLease = { () async throws(AppError) in
                try await take(for: lease, endpoint, principal, within: timeout ?? Self.standardWait)
            }
        }
        let call = ToolCall(
            name,
            of: endpoint,
            arguments: try request[Self.arguments] ?? [:],
            wait: .seconds(try request[Self.wait] ?? 10),
            timeout: timeout,
            maxPixels: try request[Self.maxPixels] ?? 1_568,
            notify: request.notify,
            agent: request.agent,
            trace: request.trace,
            takeLease: takeLease
        )
        do { return ToolResult(forwarding: try await apps.call(call, of: principal)) } catch {
            return ToolResult(forwarding: error.result(for: .brokerAgent, at: endpoint.id))
        }
    }

    /// Lists the tools of an app that was never listed, so that the arguments of the call are checked. An app that does not
    /// answer in time validates the arguments itself.
    ///
    /// - Returns: The rest of the timeout, at least one second; nil without a timeout.
    private func listIfUnknown(
        _ endpoint: Endpoint,
        _ principal: Principal,
        within timeout: Duration?
    ) async -> Duration? {
        // The broker of another host checks the arguments.
        guard !endpoint.isOnOtherHost, endpoint.state == .online, await apps.toolCount(of: endpoint) == nil else {
            return timeout
        }
        let watch = ElapsedTimer(clock)
        _ = try? await withTimeout(Self.listLimit, clock: clock) { try await apps.tools(of: endpoint, for: principal) }
        return timeout.map { max($0 - watch.elapsed, .seconds(1)) }
    }

    /// Takes or renews the lease.
    private func take(
        for seconds: Int,
        _ endpoint: Endpoint,
        _ principal: Principal,
        within wait: Duration
    ) async throws(AppError) {
        do {
            _ = try await leases.take(endpoint, for: principal, seconds: seconds, wait: wait, note: nil, renewing: nil)
        } catch AccessError.leased(let conflict) {
            throw .leased(conflict)
        } catch let problem as Problem {
            throw .leaseRefused(problem)
        } catch {
            throw .leaseRefused(Problem(.unavailable, "\(error)"))
        }
    }
}

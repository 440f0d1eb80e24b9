import JSON
import Model
import Registry
import ServiceLifecycle

/// `endpoint_wait`.
extension BrokerServer {
    func wait(_ arguments: ToolArguments, _ caller: AgentCaller) async throws(ToolRefusal) -> ToolResult {
        try check(.registryRead, caller)
        let event = try arguments.word("event", as: EndpointWatch.Event.self) ?? .online
        let seconds = try arguments.number("timeout_s", in: 1...60) ?? 30
        let filter = try arguments.required("filter")
        let (start, changes) = await registry.changes()
        guard case .snapshot(let endpoints, _) = start else {
            throw ToolRefusal("the list could not be read; try again")
        }
        let watch = EndpointWatch(event, filter: filter, endpoints.filter(caller.sees))
        if let endpoint = watch.found { return await result(event.rawValue, endpoint) }

        let found = await withTaskGroup(of: Endpoint?.self) { [clock] group in
            group.addTask {
                var watch = watch
                for await change in changes where caller.sees(change.endpoint) {
                    if let endpoint = watch.take(change) { return endpoint }
                }
                return nil
            }
            group.addTask {
                // Who waits is answered as well when the broker stops.
                try? await cancelWhenGracefulShutdown { try await clock.sleep(for: .seconds(seconds)) }
                return nil
            }
            let first = await group.next() ?? nil
            group.cancelAll()
            return first
        }
        guard let found else {
            let what = "nothing that fits \"\(Untrusted(filter, limit: 60))\" was \(event.rawValue) within \(seconds) s"
            return ToolResult("timeout: \(what)", ["event": "timeout"])
        }
        return await result(event.rawValue, found)
    }

    private func result(_ event: String, _ endpoint: Endpoint) async -> ToolResult {
        guard let row = await rows(await trust.judged([endpoint])).first else {
            return ToolResult(event, ["event": .string(event)])
        }
        return ToolResult(
            "\(event): \(row.endpoint.id) (\(row.status))",
            ["event": .string(event), "endpoint": .object(row.json)]
        )
    }
}

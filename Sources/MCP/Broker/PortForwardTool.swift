import JSON
package import Model
import Tunnels

/// The tool `port_forward`.
extension BrokerMCPServer {
    /// The argument `action` of `port_forward`.
    enum Action: String, CaseIterable {
        case open, list, close
    }

    func forward(_ arguments: ToolArguments, _ caller: AgentCaller) async throws(ToolError) -> ToolResult {
        try requireScope(.tunnelOpen, for: caller)
        guard let action = try arguments.word("action", as: Action.self) else {
            throw ToolError("action is missing")
        }
        switch action {
        case .open: return try await open(arguments, caller)
        case .list:
            let tunnels = await tunnels.tunnels(of: caller)
            guard !tunnels.isEmpty else { return ToolResult("none", ["tunnels": []]) }
            return ToolResult(
                tunnels.map(Self.line).joined(separator: "\n"),
                ["tunnels": .array(tunnels.map { .object(Self.json($0)) })]
            )
        case .close:
            let id = try arguments.required("tunnel")
            do {
                try await tunnels.close(id, of: caller)
            } catch TunnelError.noSuchTunnel {
                throw ToolError("you have no tunnel \"\(SanitizedText(id))\": action list shows your tunnels")
            } catch {
                throw Self.toolError(error)
            }
            return ToolResult("closed", ["closed": .string(id)])
        }
    }

    private func open(_ arguments: ToolArguments, _ caller: AgentCaller) async throws(ToolError) -> ToolResult {
        let endpoint = try await endpoint(matching: try arguments.required("endpoint"), for: caller)
        let local = UInt16(clamping: try arguments.number("localPort", in: 1...65_535) ?? 0)
        let spec = TunnelSpec(
            local: .tcp(host: "127.0.0.1", port: local),
            target: try target(endpoint, port: try arguments.number("remotePort", in: 1...65_535)),
            noRebind: true,
            persistent: false
        )
        let tunnel: Tunnel
        do { tunnel = try await tunnels.open(spec, for: caller) } catch { throw Self.toolError(error) }
        return ToolResult(Self.line(tunnel), Self.json(tunnel))
    }

    private func target(_ endpoint: Endpoint, port: Int?) throws(ToolError) -> TunnelTarget {
        guard let port, endpoint.routes.first.map({ Int($0.port) != port }) ?? true else {
            return .endpoint(endpoint.id)
        }
        guard let udid = endpoint.location.udid else {
            throw ToolError(
                "another port can only be reached over USB, and \(endpoint.id) is on the network: leave remotePort out"
            )
        }
        return .device(udid: udid, port: UInt16(clamping: port))
    }

    private static func line(_ tunnel: Tunnel) -> String {
        "\(tunnel.id) \(address(tunnel)) \(tunnel.state.name)\(tunnel.state.reason.map { ": \($0)" } ?? "")"
    }

    private static func json(_ tunnel: Tunnel) -> JSONObject {
        var json: JSONObject = [
            "tunnel": .string(tunnel.id), "local": .string(address(tunnel)), "state": .string(tunnel.state.name),
        ]
        switch tunnel.spec.target {
        case .endpoint(let id): json["endpoint"] = .string(id.text)
        case .device(let udid, let port):
            json["device"] = .string("\(udid)")
            json["remotePort"] = .number(JSONNumber(Int(port)))
        }
        return json
    }

    private static func address(_ tunnel: Tunnel) -> String {
        let address = tunnel.listenAddresses.first ?? tunnel.spec.local
        guard case .tcp(let host, let port) = address else { return "\(address)" }
        return "\(host ?? "127.0.0.1"):\(port)"
    }

    private static func toolError(_ error: any Error) -> ToolError {
        guard let problem = error as? Problem else { return ToolError("\(error)") }
        return ToolError(problem.detail + (problem.hint.map { "; next: \($0)" } ?? ""))
    }
}

/// The tunnels of a caller: all tunnels for an owner, its own tunnels for a grant.
package protocol TunnelProvider: Sendable {
    /// Opens a tunnel.
    ///
    /// - Throws: An error that tells the caller the reason.
    func open(_ spec: TunnelSpec, for caller: AgentCaller) async throws -> Tunnel
    func tunnels(of caller: AgentCaller) async -> [Tunnel]
    func close(_ id: String, of caller: AgentCaller) async throws
}

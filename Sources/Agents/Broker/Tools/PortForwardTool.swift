package import AccessControl
import Apps
package import Model
import Tunnels

/// Opens, lists and closes the principal's tunnels.
struct PortForwardTool: BrokerTool {
    enum Action: String, CaseIterable {
        case open, list, close
    }

    private static let action = ToolParameter<Action>.word("action")
    private static let endpoint = ToolParameter.endpoint
    private static let remotePort = ToolParameter.port("remotePort", "other port of its phone")
    private static let localPort = ToolParameter.port("localPort", "default any")
    private static let tunnel = ToolParameter.text("tunnel", "to close")

    let definition = ToolDefinition(
        name: "port_forward",
        description: "Forwards local ports to apps.",
        scope: .tunnelOpen,
        required: [Self.action.property],
        optional: [Self.endpoint.property, Self.remotePort.property, Self.localPort.property, Self.tunnel.property],
        annotations: ["destructiveHint": false]
    )
    let directory: EndpointDirectory
    let tunnels: any TunnelProvider

    func call(_ request: ToolRequest, for principal: Principal) async throws(ToolError) -> ToolResult {
        guard let action = try request[Self.action] else {
            throw ToolError("action is missing; it must be one of open, list, close")
        }
        switch action {
        case .open: return try await open(request, for: principal)
        case .list: return await list(for: principal)
        case .close: return try await close(request.required(Self.tunnel), for: principal)
        }
    }

    private func open(_ request: ToolRequest, for principal: Principal) async throws(ToolError) -> ToolResult {
        let endpoint = try await directory.endpoint(of: request, for: principal)
        let spec = TunnelSpec(
            local: .tcp(host: "127.0.0.1", port: try request[Self.localPort] ?? 0),
            target: try Self.target(endpoint, port: try request[Self.remotePort]),
            noRebind: true,
            persistent: false
        )
        let tunnel: Tunnel
        do { tunnel = try await tunnels.open(spec, for: principal) } catch { throw Self.toolError(error) }
        return ToolResult(Self.line(tunnel), Self.json(tunnel))
    }

    private func list(for principal: Principal) async -> ToolResult {
        let tunnels = await tunnels.tunnels(of: principal)
        return ToolResult(
            tunnels.isEmpty ? "none" : tunnels.map(Self.line).joined(separator: "\n"),
            ["tunnels": .array(tunnels.map { .object(Self.json($0)) })]
        )
    }

    private func close(_ id: String, for principal: Principal) async throws(ToolError) -> ToolResult {
        do { try await tunnels.close(id, of: principal) } catch TunnelError.noSuchTunnel {
            throw ToolError("you have no tunnel \"\(SanitizedText(id))\": action list shows your tunnels")
        } catch {
            throw Self.toolError(error)
        }
        return ToolResult("closed", ["closed": .string(id)])
    }

    private static func target(_ endpoint: Endpoint, port: UInt16?) throws(ToolError) -> TunnelTarget {
        guard let port, endpoint.routes.first?.port != port else { return .endpoint(endpoint.id) }
        guard let udid = endpoint.location.udid else {
            throw ToolError(
                "another port can only be reached over USB, and \(endpoint.id) is on the network: leave remotePort out"
            )
        }
        return .device(udid: udid, port: port)
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
        case .device(let route):
            json["device"] = .string("\(route.udid)")
            if let port = route.socket.port { json["remotePort"] = .number(JSONNumber(Int(port))) }
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

/// The tunnels of a principal: all tunnels for an owner, its own tunnels for a grant.
package protocol TunnelProvider: Sendable {
    /// Opens a tunnel.
    ///
    /// - Throws: An error that tells the principal the reason.
    func open(_ spec: TunnelSpec, for principal: Principal) async throws -> Tunnel
    func tunnels(of principal: Principal) async -> [Tunnel]
    func close(_ id: String, of principal: Principal) async throws
}

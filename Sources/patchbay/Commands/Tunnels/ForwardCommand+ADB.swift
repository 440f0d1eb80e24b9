import Client
import Model

/// The options of `adb forward` about tunnels that are open.
extension ForwardCommand {
    /// Prints one line for each tunnel to a phone: `UDID tcp:7777 tcp:9876`.
    func showList(_ client: PatchbayClient) async throws {
        let tunnels = try await client.tunnels.list()
        if format.json { return try options.output.jsonLine(ListResponse(tunnels)) }
        for tunnel in tunnels {
            if let line = Self.adbLine(of: tunnel) { try options.output.line(line) }
        }
    }

    /// Returns the line of `adb forward --list`; nil for a tunnel to an endpoint.
    static func adbLine(of tunnel: Tunnel) -> String? {
        guard case .device(let route) = tunnel.spec.target else { return nil }
        let remote = route.socket.port.map { "tcp:\($0)" } ?? "\(route.socket)"
        return "\(route.udid) \(EphemeralTunnels.fixed(tunnel.spec, tunnel).local) \(remote)"
    }

    /// Removes the tunnel that listens on an address, which may be that of `tcp:0` after the choice of a port.
    func removeTunnel(on text: String, _ client: PatchbayClient) async throws {
        guard let local = ListenAddress(text) else {
            throw CLIError.usage("\"\(SanitizedText(text))\" is not a local address", try: "tcp:7777")
        }
        let tunnels = try await client.tunnels.list()
        guard let tunnel = tunnels.first(where: { EphemeralTunnels.fixed($0.spec, $0).local == local }) else {
            throw CLIError.notFound("no tunnel listens on \(local)", try: "patchbay tunnels")
        }
        try await client.tunnels.remove(tunnel.id)
        try options.output.line("Removed \(tunnel.id).")
    }
}

import Devices
import HummingbirdCore
import Model

/// `/v1/reverse-tunnels`: ports of Android phones that lead to ports of this machine.
enum ReverseTunnelRoutes {
    @Sendable static func list(_ request: APIRequest) async throws -> APIResponse {
        try .json(ListResponse(await request.services.reverseTunnels.list()))
    }

    @Sendable static func open(_ request: APIRequest) async throws -> APIResponse {
        let (udid, port) = try phonePort(of: request)
        let spec = try await request.body(ReverseTunnelSpec.self)
        // To the broker, a phone's app would be a program of the user who runs the adb server.
        guard spec.localPort != request.services.tcpPort else {
            throw Problem(.forbidden, "port \(spec.localPort) of this machine is the broker's own")
        }
        try await DeviceRoutes.requireAttachedHere(udid, "opens its ports", request)
        try await request.services.leasePolicy.authorize(
            .device(USBRoute(udid: udid, port: port)),
            for: request.principal
        )
        return try .json(try await request.services.reverseTunnels.open(port, of: udid, to: spec.localPort))
    }

    @Sendable static func remove(_ request: APIRequest) async throws -> APIResponse {
        let (udid, port) = try phonePort(of: request)
        try await request.services.reverseTunnels.remove(port, of: udid)
        return .noContent
    }

    /// Returns the phone of the path, and its port.
    private static func phonePort(of request: APIRequest) throws -> (UDID, UInt16) {
        let text = try request.parameter("port")
        guard let port = UInt16(text), port > 0, text.allSatisfy(\.isNumber) else {
            throw Problem(.notFound, "\"\(SanitizedText(text))\" is not a port from 1 to 65535")
        }
        return (try DeviceRoutes.udid(of: request), port)
    }
}

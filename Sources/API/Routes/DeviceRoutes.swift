import Hummingbird
import Model

/// `/v1/devices`.
enum DeviceRoutes {
    @Sendable static func list(_ call: Call) async throws -> Response {
        try call.answer(DeviceList(devices: await call.broker.devices.devices()))
    }
}

import Hummingbird
import Model

/// `/v1/devices`.
enum DeviceRoutes {
    @Sendable static func list(_ call: APIRequest) async throws -> Response {
        // Who may see some endpoints only has nothing to do with phones.
        try call.answer(DeviceList(devices: call.visitor.seesAll ? await call.broker.devices.devices() : []))
    }
}

/// Every phone that is attached: the answer to `GET /v1/devices` and the `devices` event.
package struct DeviceList: Hashable, Sendable, Codable {
    /// The version of this document's form.
    package let schema: Int
    package let devices: [Device]

    package init(devices: [Device]) {
        schema = 1
        self.devices = devices
    }
}

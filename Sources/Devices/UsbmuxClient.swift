package import SystemIO

/// What Patchbay asks of usbmuxd.
///
/// The role that one conformance suite holds both conformers to: `NativeUsbmuxClient`, the default, and
/// `LibusbmuxdClient`. Neither tells about changes: that is `DeviceMonitor`'s work, with either of them.
package protocol UsbmuxClient: Sendable {
    /// The phones that usbmuxd shows now, in its order. Throws `UsbmuxError`.
    func listDevices() async throws -> [UsbmuxDeviceRecord]

    /// A stream to a TCP port of a phone.
    ///
    /// A DeviceID means nothing to another run of usbmuxd; whoever keeps one proves afterwards that it was the same run.
    /// - Throws: `UsbmuxError`, or `CancellationError`.
    func connect(deviceID: UInt32, port: UInt16) async throws -> Connection

    /// The identifier that usbmuxd gave this machine, with which phones know it. Throws `UsbmuxError`.
    func readBUID() async throws -> String
}

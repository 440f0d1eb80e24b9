import Model

/// A phone under the number that the facade's clients know it by.
struct NumberedDevice: Hashable, Sendable {
    /// Ours, not usbmuxd's; never 0, which is the end of a list in libusbmuxd.
    let deviceID: UInt32
    let device: Device
}

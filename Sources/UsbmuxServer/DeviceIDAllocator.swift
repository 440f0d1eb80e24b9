import Model

/// Gives phones their numbers.
///
/// As in usbmuxd, a phone has a new number each time it is plugged in, and no number is ever given again: clients keep
/// numbers, and an old one must not lead to another phone. Unlike there, this also holds across restarts of usbmuxd.
struct DeviceIDAllocator: Hashable, Sendable {
    /// By number.
    private(set) var phones: [NumberedDevice] = []
    private var last: UInt32 = 0

    /// Takes in which phones are there now.
    ///
    /// Only those on the cable are listed. libusbmuxd wants the network address of a network device, which Patchbay does
    /// not know, and takes a record without one for a broken usbmuxd that has lost all its phones.
    /// - Returns: What changed, farewells first.
    mutating func update(_ devices: [Device]) -> [DeviceChange] {
        let cabled = devices.filter { $0.transport == .usb }
        // A phone that was replugged differs in its time.
        let gone = phones.filter { !cabled.contains($0.device) }
        let known = Set(phones.map(\.device))
        phones.removeAll { gone.contains($0) }
        let new = cabled.filter { !known.contains($0) }.map { device in
            last += 1
            return NumberedDevice(deviceID: last, device: device)
        }
        phones += new
        return gone.map(DeviceChange.detached) + new.map(DeviceChange.attached)
    }

    func phone(_ deviceID: UInt32) -> NumberedDevice? { phones.first { $0.deviceID == deviceID } }
}

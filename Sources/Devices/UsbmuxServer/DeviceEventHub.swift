import Model

/// The state that all clients share: the attached devices with their DeviceIDs, and the listeners.
actor DeviceEventHub {
    /// A listener's subscription: the devices at its begin, and every change since.
    struct Subscription: Sendable {
        let devices: [NumberedDevice]
        /// Finishes when more than `bufferLimit` changes are waiting; the server then disconnects the listener.
        let changes: AsyncStream<DeviceChange>
    }

    /// Maximum number of changes that wait for a listener. Plugging cables cannot cause more before a running listener
    /// is scheduled.
    static let bufferLimit = 256

    private(set) var snapshot = UsbmuxServerSnapshot()
    private let changes = Broadcast<DeviceChange>(slow: .ends(after: DeviceEventHub.bufferLimit))

    /// Sets the attached devices and notifies the listeners of the changes.
    func update(_ devices: [Device]) {
        for change in snapshot.devices.update(devices) { changes.send(change) }
    }

    func subscribe(_ number: UInt32, as program: ListenerInfo) -> Subscription {
        snapshot.listeners[number] = program
        return Subscription(devices: snapshot.devices.devices, changes: changes.subscribe())
    }

    /// Removes a listener whose connection ends.
    func unsubscribe(_ number: UInt32) { snapshot.listeners[number] = nil }
}

/// Assigns DeviceIDs.
///
/// As in usbmuxd, a device gets a new ID each time it is plugged in, and no ID is reused. Clients remember IDs, and an
/// old ID must not lead to another device. Unlike in usbmuxd, this also holds across restarts of usbmuxd.
struct DeviceIDAllocator: Hashable, Sendable {
    /// Attached devices in ascending order of their IDs.
    private(set) var devices: [NumberedDevice] = []
    private var lastDeviceID: UInt32 = 0

    /// Sets the attached devices.
    ///
    /// Lists USB devices only. For a network device, libusbmuxd expects a network address, which Patchbay does not
    /// know. libusbmuxd treats a record without an address as a broken usbmuxd that lost all devices.
    /// - Returns: The changes, detached devices first.
    mutating func update(_ attached: [Device]) -> [DeviceChange] {
        let cabled = attached.filter { $0.transport == .usb }
        // A replugged device has another `Device.ID`. A device that reports its name has not.
        let present = Set(cabled.map(\.id))
        let detached = devices.filter { !present.contains($0.device.id) }
        let known = Set(devices.map(\.device.id))
        devices.removeAll { detached.contains($0) }
        let new = cabled.filter { !known.contains($0.id) }.map { device in
            lastDeviceID += 1
            return NumberedDevice(deviceID: lastDeviceID, device: device)
        }
        devices += new
        return detached.map(DeviceChange.detached) + new.map(DeviceChange.attached)
    }

    func device(_ deviceID: UInt32) -> NumberedDevice? { devices.first { $0.deviceID == deviceID } }
}

/// A device event for listeners.
enum DeviceChange: Hashable, Sendable {
    case attached(NumberedDevice)
    case detached(NumberedDevice)
}

/// A device and its DeviceID.
struct NumberedDevice: Hashable, Sendable {
    /// Assigned by Patchbay, not by usbmuxd. Never 0, because libusbmuxd ends a list at 0.
    let deviceID: UInt32
    let device: Device
}

/// Identity that a client sends with Listen; `ListListeners` returns it.
struct ListenerInfo: Hashable, Sendable {
    let name: String
    let bundleID: String?
    let libraryVersion: Int
}

/// The immutable state from which one request is answered.
struct UsbmuxServerSnapshot: Hashable, Sendable {
    var devices = DeviceIDAllocator()
    /// Listeners by client number.
    var listeners: [UInt32: ListenerInfo] = [:]
}

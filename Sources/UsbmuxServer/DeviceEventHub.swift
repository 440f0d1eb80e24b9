import Model

/// The state that all clients share: the attached devices with their DeviceIDs, and the listeners.
actor DeviceEventHub {
    /// A listener's subscription: the devices at its begin, and every change since.
    struct Subscription: Sendable {
        let devices: [NumberedDevice]
        /// Finishes when `bufferLimit` changes are waiting; the server then disconnects the listener.
        let changes: AsyncStream<DeviceChange>
    }

    /// Maximum number of changes that wait for a listener. Plugging cables cannot cause more before a running listener
    /// is scheduled.
    static let bufferLimit = 256

    private(set) var snapshot = UsbmuxServerSnapshot()
    private var listeners: [UInt32: AsyncStream<DeviceChange>.Continuation] = [:]

    /// Sets the attached devices and notifies the listeners of the changes.
    func update(_ devices: [Device]) {
        for change in snapshot.devices.update(devices) {
            for (number, listener) in listeners {
                if case .enqueued = listener.yield(change) { continue }
                unsubscribe(number)
            }
        }
    }

    func subscribe(_ number: UInt32, as program: ListenerInfo) -> Subscription {
        let (changes, continuation) = AsyncStream.makeStream(
            of: DeviceChange.self,
            bufferingPolicy: .bufferingOldest(Self.bufferLimit)
        )
        listeners[number] = continuation
        snapshot.listeners[number] = program
        return Subscription(devices: snapshot.devices.devices, changes: changes)
    }

    func unsubscribe(_ number: UInt32) {
        listeners.removeValue(forKey: number)?.finish()
        snapshot.listeners[number] = nil
    }
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
        // A device that was replugged has another `since` time.
        let detached = devices.filter { !cabled.contains($0.device) }
        let known = Set(devices.map(\.device))
        devices.removeAll { detached.contains($0) }
        let new = cabled.filter { !known.contains($0) }.map { device in
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

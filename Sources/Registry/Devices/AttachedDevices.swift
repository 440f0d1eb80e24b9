package import Model
import Synchronization

/// Lists phones.
package protocol DeviceListing: Sendable {
    func devices() async -> [Device]
    /// Returns a stream of the current list and of every later list. A slow reader gets only the newest list.
    func deviceLists() async -> AsyncStream<[Device]>
}

/// The list of attached devices, with a stream of changes for the servers.
package actor AttachedDevices: DeviceListing {
    /// The attached devices, with the owners' notes.
    private var list: [Device] = []
    private var notes: [UDID: DeviceNote] = [:]
    private let phones = Mutex<Set<UDID>>([])
    private let subscribers = Broadcast<[Device]>(slow: .keepsNewest(1))

    package init() {}

    package func devices() -> [Device] { list }

    /// Returns whether apps on a phone can be reached. Fast enough for each connection.
    package nonisolated func contains(_ udid: UDID) -> Bool { phones.withLock { $0.contains(udid) } }

    package func deviceLists() -> AsyncStream<[Device]> { subscribers.subscribe(startingWith: list) }

    package func set(_ devices: [Device]) {
        let devices = devices.map(noted)
        guard devices != list else { return }
        list = devices
        phones.withLock { $0 = Set(devices.filter(\.isReady).map(\.udid)) }
        subscribers.send(devices)
    }

    /// Sets the owners' notes, which the list shows.
    func setNotes(_ notes: [UDID: DeviceNote]) {
        self.notes = notes
        set(list)
    }

    private func noted(_ device: Device) -> Device {
        var device = device
        device.label = notes[device.udid]?.label
        device.note = notes[device.udid]?.note
        return device
    }

    package func finish() {
        subscribers.finish()
    }
}

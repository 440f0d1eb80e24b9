import FoundationEssentials
import Model

/// The devices of one run of usbmuxd, merged from its events and its lists.
///
/// UDID and transport identify a device. usbmuxd may show a replugged device under two DeviceIDs for a moment. The
/// device is detached only when its last DeviceID is.
struct DeviceTable: Sendable {
    /// The maximum number of records. usbmuxd supports at most 128 devices on a bus; records above the limit are
    /// ignored.
    static let limit = 256

    private struct Key: Hashable {
        let udid: UDID
        let transport: Device.Transport
    }

    private var records: [UInt32: UsbmuxDeviceRecord] = [:]
    private var present: [Key: Device] = [:]
    /// DeviceIDs detached since the last list was requested. That list may still contain them.
    private var gone: Set<UInt32>?

    /// The devices sorted by UDID, USB before network.
    var devices: [Device] {
        present.values.sorted { one, other in
            one.udid == other.udid ? one.transport == .usb && other.transport != .usb : one.udid < other.udid
        }
    }

    /// The record with which to reach a device now: USB before network, the newest DeviceID first.
    func record(of udid: UDID) -> UsbmuxDeviceRecord? {
        let known = records.values.filter { $0.udid == udid }
        let best = known.filter { $0.transport == .usb }
        return (best.isEmpty ? known : best).max { $0.deviceID < $1.deviceID }
    }

    func udid(of deviceID: UInt32) -> UDID? { records[deviceID]?.udid }

    /// Adds a record. Returns the resulting events.
    mutating func attach(_ record: UsbmuxDeviceRecord, at time: Date) -> [DeviceEvent] {
        var events: [DeviceEvent] = []
        if let old = records[record.deviceID] {
            if Self.key(of: old) == Self.key(of: record) { return [] }
            events = detach(record.deviceID)
        }
        guard records.count < Self.limit else { return events }
        records[record.deviceID] = record
        let key = Self.key(of: record)
        if present[key] == nil {
            let device = Device(
                udid: record.udid,
                transport: record.transport,
                productID: record.productID,
                locationID: record.locationID,
                attachedAt: time
            )
            present[key] = device
            events.append(.attached(device))
        }
        return events
    }

    /// Removes a record. Returns an event if it was the last one of its device.
    mutating func detach(_ deviceID: UInt32) -> [DeviceEvent] {
        guard let record = records.removeValue(forKey: deviceID) else { return [] }
        gone?.insert(deviceID)
        let key = Self.key(of: record)
        guard !records.values.contains(where: { Self.key(of: $0) == key }),
            let device = present.removeValue(forKey: key)
        else { return [] }
        return [.detached(device)]
    }

    /// Must be called before a list is requested.
    mutating func expectList() { gone = [] }

    /// Adds the devices of the list that no event reported yet. Devices missing from the list stay: they were attached
    /// after the list was made, or their `Detached` event is still to come.
    mutating func reconcile(with list: [UsbmuxDeviceRecord], at time: Date) -> [DeviceEvent] {
        let gone = gone ?? []
        self.gone = nil
        return list.filter { !gone.contains($0.deviceID) && records[$0.deviceID] == nil }
            .flatMap { attach($0, at: time) }
    }

    private static func key(of record: UsbmuxDeviceRecord) -> Key {
        Key(udid: record.udid, transport: record.transport)
    }
}

import FoundationEssentials
import Model

/// The phones of one run of usbmuxd, put together from what it tells and what it lists.
///
/// A phone is the same one as long as UDID and transport are; usbmuxd may know it under two DeviceIDs for a moment when it
/// is replugged, so it has gone only when the last of them has.
struct DeviceTable: Sendable {
    /// More than usbmuxd can have on a bus (128); what goes beyond is not listed.
    static let limit = 256

    private struct Key: Hashable {
        let udid: UDID
        let transport: Device.Transport
    }

    private var records: [UInt32: UsbmuxDeviceRecord] = [:]
    private var present: [Key: Device] = [:]
    /// What went since a list was asked for, which may still hold it.
    private var gone: Set<UInt32>?

    /// By UDID, the cable first.
    var devices: [Device] {
        present.values.sorted { one, other in
            one.udid == other.udid ? one.transport == .usb && other.transport != .usb : one.udid < other.udid
        }
    }

    /// Under which DeviceID to reach a phone now: by cable before network, the newest before older ones.
    func record(of udid: UDID) -> UsbmuxDeviceRecord? {
        let known = records.values.filter { $0.udid == udid }
        let best = known.filter { $0.transport == .usb }
        return (best.isEmpty ? known : best).max { $0.deviceID < $1.deviceID }
    }

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
                since: time
            )
            present[key] = device
            events.append(.attached(device))
        }
        return events
    }

    mutating func detach(_ deviceID: UInt32) -> [DeviceEvent] {
        guard let record = records.removeValue(forKey: deviceID) else { return [] }
        gone?.insert(deviceID)
        let key = Self.key(of: record)
        guard !records.values.contains(where: { Self.key(of: $0) == key }),
            let device = present.removeValue(forKey: key)
        else { return [] }
        return [.detached(device)]
    }

    /// To be called before a list is asked for.
    mutating func expectList() { gone = [] }

    /// Adds what the list has and nobody told of yet. What it lacks stays: that was attached after the list was made, or
    /// its `Detached` is on its way.
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

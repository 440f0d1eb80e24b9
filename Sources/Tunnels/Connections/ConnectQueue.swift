import SystemIO

/// Limits the connects in flight for each server and each device, and keeps those above the limit in order.
///
/// usbmuxd's accept queue holds 5 connections. A device that never answers must not delay the others. A connect that
/// waits for its device therefore releases the slot of the server after a while.
struct ConnectQueue {
    static let perServer = 4
    static let perDevice = 4
    /// The time after which a connect clearly waits for the device and not for the server.
    static let serverSlotTime = Duration.milliseconds(50)

    /// The right to connect to a device, until `release`.
    struct Slot {
        let key: ConnectLimitKey
        /// True until `releaseServer`.
        fileprivate(set) var includesServer = true
    }

    private var servers: [ObjectIdentifier: Int] = [:]
    private var devices: [ConnectLimitKey: Int] = [:]
    private var waiting: [(handle: ConnectionHandle, key: ConnectLimitKey)] = []

    /// Takes a slot, or adds the connection to the queue.
    mutating func enter(_ handle: ConnectionHandle, _ key: ConnectLimitKey) -> Slot? {
        guard isFree(key), !waiting.contains(where: { $0.key == key }) else {
            waiting.append((handle, key))
            return nil
        }
        return take(key)
    }

    /// Removes a connection from the queue.
    mutating func leave(_ handle: ConnectionHandle) { waiting.removeAll { $0.handle == handle } }

    /// Releases the slot of the server. The slot of the device stays.
    mutating func releaseServer(_ slot: inout Slot) {
        guard slot.includesServer else { return }
        slot.includesServer = false
        Self.decrement(&servers, slot.key.server)
    }

    /// Releases the slots of the server and the device.
    mutating func release(_ slot: Slot) {
        var slot = slot
        releaseServer(&slot)
        Self.decrement(&devices, slot.key)
    }

    /// Removes and returns the first waiting connection that has a slot now.
    mutating func next() -> (handle: ConnectionHandle, slot: Slot)? {
        guard !waiting.isEmpty, let index = waiting.firstIndex(where: { isFree($0.key) }) else { return nil }
        let (handle, key) = waiting.remove(at: index)
        return (handle, take(key))
    }

    private func isFree(_ key: ConnectLimitKey) -> Bool {
        servers[key.server, default: 0] < Self.perServer && devices[key, default: 0] < Self.perDevice
    }

    private mutating func take(_ key: ConnectLimitKey) -> Slot {
        servers[key.server, default: 0] += 1
        devices[key, default: 0] += 1
        return Slot(key: key)
    }

    private static func decrement<Key>(_ counts: inout [Key: Int], _ key: Key) {
        let left = counts[key, default: 1] - 1
        counts[key] = left > 0 ? left : nil
    }
}

import SystemIO

/// Limits the connects in flight for each server and each device, and keeps those above the limit in order.
///
/// usbmuxd's accept queue holds 5 connections. A device that never answers must not delay the others. A connect that
/// waits for its device therefore gives up its place at the server after a while.
struct ConnectQueue {
    static let perServer = 4
    static let perDevice = 4
    /// The time after which a connect clearly waits for the device and not for the server.
    static let serverHoldTime = Duration.milliseconds(50)

    /// A place, until `release` and `releaseServer`.
    struct Place {
        let key: ConnectLimitKey
        fileprivate(set) var holdsServer = true
    }

    private var servers: [ObjectIdentifier: Int] = [:]
    private var devices: [ConnectLimitKey: Int] = [:]
    private var waiting: [(token: ConnectionToken, key: ConnectLimitKey)] = []

    var isEmpty: Bool { servers.isEmpty && devices.isEmpty && waiting.isEmpty }

    /// Takes a place, or adds the connection to the queue.
    mutating func enter(_ token: ConnectionToken, _ key: ConnectLimitKey) -> Place? {
        guard hasPlace(key), !waiting.contains(where: { $0.key == key }) else {
            waiting.append((token, key))
            return nil
        }
        return take(key)
    }

    /// Removes a connection from the queue.
    mutating func leave(_ token: ConnectionToken) { waiting.removeAll { $0.token == token } }

    /// Gives up the place at the server. The place at the device stays.
    mutating func releaseServer(_ place: inout Place) {
        guard place.holdsServer else { return }
        place.holdsServer = false
        Self.decrement(&servers, place.key.server)
    }

    /// Gives up both places.
    mutating func release(_ place: Place) {
        var place = place
        releaseServer(&place)
        Self.decrement(&devices, place.key)
    }

    /// Removes and returns the first waiting connection that has a place now.
    mutating func next() -> (token: ConnectionToken, place: Place)? {
        guard !waiting.isEmpty, let index = waiting.firstIndex(where: { hasPlace($0.key) }) else { return nil }
        let (token, key) = waiting.remove(at: index)
        return (token, take(key))
    }

    private func hasPlace(_ key: ConnectLimitKey) -> Bool {
        servers[key.server, default: 0] < Self.perServer && devices[key, default: 0] < Self.perDevice
    }

    private mutating func take(_ key: ConnectLimitKey) -> Place {
        servers[key.server, default: 0] += 1
        devices[key, default: 0] += 1
        return Place(key: key)
    }

    private static func decrement<Key>(_ counts: inout [Key: Int], _ key: Key) {
        let left = counts[key, default: 1] - 1
        counts[key] = left > 0 ? left : nil
    }
}

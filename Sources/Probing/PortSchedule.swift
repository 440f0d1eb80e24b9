import Model

/// When each port of a phone is tried next.
struct PortSchedule: Sendable {
    /// While a client is present, and after a miss.
    static let urgent = Duration.seconds(1)
    /// Without a client: a port where nothing was found, and one where something was.
    static let idle = Duration.seconds(3)
    static let idleFound = Duration.seconds(15)

    private var tried: [USBRoute: ContinuousClock.Instant] = [:]

    /// Whether a port is to be tried now; then it is marked as tried. A new one is tried at once.
    mutating func take(_ port: USBRoute, isUrgent: Bool, isFound: Bool, at now: ContinuousClock.Instant) -> Bool {
        let pause = isUrgent ? Self.urgent : isFound ? Self.idleFound : Self.idle
        if let last = tried[port], now - last < pause { return false }
        tried[port] = now
        return true
    }

    /// Forgets the ports of all other phones.
    mutating func keep(_ phones: Set<UDID>) { tried = tried.filter { phones.contains($0.key.udid) } }
}

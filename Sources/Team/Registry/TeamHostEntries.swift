import Model

/// The entries of one other host in a `TeamView`, with limits for a host that writes too many.
struct TeamHostEntries: Sendable {
    /// The maximum number of endpoints.
    static let endpointLimit = 4_096
    /// The maximum number of attachments of phones.
    static let deviceLimit = 512

    private(set) var values: [TeamKey: [UInt8]] = [:]
    /// The keys whose values were reported.
    var reported: Set<TeamKey> = []
    private var endpoints = 0
    private var devices = 0

    /// Returns true if a key is new, and the host has its maximum number of entries of the same kind.
    func isFull(for key: TeamKey) -> Bool {
        guard values[key] == nil else { return false }
        return switch key {
        case .endpoint: endpoints >= Self.endpointLimit
        case .device: devices >= Self.deviceLimit
        case .meta, .member, .host, .claim: false
        }
    }

    /// Sets a value; nil removes it. Returns the value before.
    mutating func set(_ key: TeamKey, to value: [UInt8]?) -> [UInt8]? {
        let old = values[key]
        values[key] = value
        let difference = (value == nil ? 0 : 1) - (old == nil ? 0 : 1)
        switch key {
        case .endpoint: endpoints += difference
        case .device: devices += difference
        case .meta, .member, .host, .claim: break
        }
        return old
    }
}

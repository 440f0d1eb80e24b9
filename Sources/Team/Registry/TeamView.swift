import AccessControl
package import FoundationEssentials
package import Model

/// The entries of the team registry as this host has last seen them, and the events that follow from their changes.
///
/// Values of endpoints are kept as bytes, and decoded only for an event. So a list with 10,000 known endpoints is
/// compared in milliseconds, and every endpoint is in memory only once.
package struct TeamView: Sendable {
    /// The maximum number of claims. A limit per host would not help: every host can write claims of every other.
    static let claimLimit = 4_096
    /// The maximum number of keys in `unreadable`.
    static let unreadableLimit = 1_000

    private let ownHost: HostName
    private var members: [HostName: TeamMember] = [:]
    private var claims: [LeaseTarget: TeamClaim] = [:]
    /// The values of claims, with those of hosts that are no members.
    private var claimValues: [LeaseTarget: [UInt8]] = [:]
    private var memberValues: [HostName: [UInt8]] = [:]
    private var entries: [HostName: TeamHostEntries] = [:]
    /// The keys of removed members, which are members no more under any name.
    var removedKeys: Set<KeyPin> = []
    /// The keys that are ignored: this version cannot read the value, or there are too many entries.
    package private(set) var unreadable: Set<TeamKey> = []
    /// The time since which the entries of other hosts may be outdated. Nil while they are current.
    package private(set) var staleSince: Date?
    /// True if claims were ignored since the last list, because there are more than `claimLimit`.
    private(set) var hasTooManyClaims = false
    private var events: [TeamEvent] = []

    /// - Parameters:
    ///   - host: The name of this host.
    ///   - date: The start of the broker: there is no list yet.
    package init(of host: HostName, staleSince date: Date) {
        ownHost = host
        staleSince = date
    }

    /// Replaces all entries with a new list.
    ///
    /// - Returns: The differences.
    package mutating func replace(with list: [TeamStoreEntry]) -> [TeamEvent] {
        hasTooManyClaims = false
        var listed: Set<TeamKey> = []
        var rest: [(TeamKey, [UInt8])] = []
        listed.reserveCapacity(list.count)
        for entry in list {
            guard let key = TeamKey(entry.key) else { continue }
            listed.insert(key)
            // Members first, because the entries of other hosts are ignored.
            if case .member = key { set(key, to: entry.value) } else { rest.append((key, entry.value)) }
        }
        for key in keys where !listed.contains(key) { remove(key) }
        unreadable.formIntersection(listed)
        for (key, value) in rest { set(key, to: value) }
        return takeEvents()
    }

    /// Applies the changes of one revision.
    package mutating func apply(_ changes: [TeamStoreChanges.Change]) -> [TeamEvent] {
        for change in changes {
            switch change {
            case .put(let entry): TeamKey(entry.key).map { set($0, to: entry.value) }
            case .delete(let key): TeamKey(key).map { remove($0) }
            }
        }
        return takeEvents()
    }

    /// Marks the entries of all other hosts as possibly outdated, or as current (nil). The first time counts.
    package mutating func mark(staleSince date: Date?) -> [TeamEvent] {
        guard (date == nil) != (staleSince == nil) else { return [] }
        staleSince = date
        return [.stale(since: date)]
    }

    private var keys: [TeamKey] {
        memberValues.keys.map { .member($0) } + claimValues.keys.map { .claim($0) }
            + entries.values.flatMap { $0.values.keys }
    }

    private mutating func takeEvents() -> [TeamEvent] {
        defer { events = [] }
        return events
    }
}

/// Changes of single keys.
extension TeamView {
    private mutating func set(_ key: TeamKey, to value: [UInt8]) {
        // A value that is too large is unreadable, and takes no memory.
        let value = value.count > TeamCoding.readLimit ? [] : value
        switch key {
        case .meta: break
        case .member(let name):
            guard memberValues.updateValue(value, forKey: name) != value else { return }
            setMember(name, from: value)
        case .claim(let target):
            guard claimValues[target] != nil || claimValues.count < Self.claimLimit else {
                hasTooManyClaims = true
                return ignore(key)
            }
            guard claimValues.updateValue(value, forKey: target) != value else { return }
            reportClaim(of: target)
        case .host(let host), .endpoint(_, let host), .device(_, _, let host):
            guard host != ownHost else { return }
            guard entries[host]?.isFull(for: key) != true else { return ignore(key) }
            guard entries[host, default: TeamHostEntries()].set(key, to: value) != value else { return }
            if members[host] != nil { report(key, of: host, value) }
        }
    }

    private mutating func remove(_ key: TeamKey) {
        unreadable.remove(key)
        switch key {
        case .meta: break
        case .member(let name):
            memberValues[name] = nil
            removeMember(name)
        case .claim(let target):
            claimValues[target] = nil
            reportClaim(of: target)
        case .host(let host), .endpoint(_, let host), .device(_, _, let host):
            _ = entries[host]?.set(key, to: nil)
            withdraw(key, of: host)
            if entries[host]?.values.isEmpty == true { entries[host] = nil }
        }
    }

    private mutating func ignore(_ key: TeamKey) {
        if unreadable.count < Self.unreadableLimit { unreadable.insert(key) }
    }

    private mutating func setMember(_ name: HostName, from value: [UInt8]) {
        guard let member = TeamCoding.value(TeamMember.self, from: value), member.name == name else {
            ignore(.member(name))
            return removeMember(name)
        }
        unreadable.remove(.member(name))
        guard !removedKeys.contains(member.key) else { return removeMember(name) }
        let isNew = members.updateValue(member, forKey: name) == nil
        events.append(.member(member))
        guard isNew else { return }
        // The broker first: its endpoints are reached through it.
        let known = (entries[name]?.values ?? [:]).sorted { $0.key.text < $1.key.text }
        for (key, value) in known where key == .host(name) { report(key, of: name, value) }
        for (key, value) in known where key != .host(name) { report(key, of: name, value) }
        for target in claimValues.keys { reportClaim(of: target) }
    }

    private mutating func removeMember(_ name: HostName) {
        guard members.removeValue(forKey: name) != nil else { return }
        for (target, claim) in claims where claim.host == name { reportClaim(of: target) }
        let reported = (entries[name]?.reported ?? []).sorted { $0.text < $1.text }
        for key in reported where key != .host(name) { withdraw(key, of: name) }
        withdraw(.host(name), of: name)
        events.append(.memberRemoved(name))
    }

    /// Reports the claim of a target as it stands now. The claim of a host that is no member does not count.
    private mutating func reportClaim(of target: LeaseTarget) {
        var claim: TeamClaim?
        if let value = claimValues[target] {
            claim = TeamCoding.value(TeamClaim.self, from: value)
            if claim == nil { ignore(.claim(target)) } else { unreadable.remove(.claim(target)) }
        }
        if let host = claim?.host, members[host] == nil { claim = nil }
        let known = claims[target]
        guard claim != known else { return }
        claims[target] = claim
        events.append(claim.map { .claim(target, $0) } ?? .claimRemoved(target))
    }

    /// Reports a new or changed entry of a member.
    private mutating func report(_ key: TeamKey, of host: HostName, _ value: [UInt8]) {
        guard let event = Self.event(for: key, value) else {
            ignore(key)
            return withdraw(key, of: host)
        }
        unreadable.remove(key)
        entries[host]?.reported.insert(key)
        events.append(event)
    }

    /// Reports the end of an entry, if the entry was reported.
    private mutating func withdraw(_ key: TeamKey, of host: HostName) {
        guard entries[host]?.reported.remove(key) != nil else { return }
        switch key {
        case .host: events.append(.hostRemoved(host))
        case .endpoint(let id, _): events.append(.endpointRemoved(id.on(host)))
        case .device(let udid, let transport, _): events.append(.deviceRemoved(udid, transport, on: host))
        case .meta, .member, .claim: break
        }
    }

    /// Returns the event of a new value; nil if the value cannot be read or does not belong to the key.
    private static func event(for key: TeamKey, _ value: [UInt8]) -> TeamEvent? {
        switch key {
        case .host(let name):
            guard let host = TeamCoding.value(TeamHost.self, from: value), host.name == name else { return nil }
            return .host(host.sanitized)
        case .endpoint(let id, let host):
            return TeamCoding.value(TeamEndpoint.self, from: value).map { .endpoint($0.endpoint(id, on: host)) }
        case .device(let udid, let transport, let host):
            guard var device = TeamCoding.value(Device.self, from: value), device.udid == udid,
                device.transport == transport
            else { return nil }
            device.routes = nil
            return .device(device, on: host)
        case .meta, .member, .claim: return nil
        }
    }
}

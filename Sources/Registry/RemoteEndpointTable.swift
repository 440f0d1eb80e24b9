import FoundationEssentials
package import Model

/// A change of the endpoints of another host, as the team's registry reports it.
package enum RemoteEndpointChange: Sendable {
    /// A new or changed endpoint, as the broker of its host publishes it. `Endpoint.on` converts it.
    case put(Endpoint, of: HostName)
    /// The endpoint with this ID on its host is gone.
    case remove(EndpointID, of: HostName)
    /// The complete list of a host. Endpoints that it lacks are removed.
    case replaceAll([Endpoint], of: HostName)
    /// The host has left the team, or its broker has ended.
    case removeAll(of: HostName)

    var host: HostName {
        switch self {
        case .put(_, let host), .remove(_, let host), .replaceAll(_, let host), .removeAll(let host): host
        }
    }
}

/// The endpoints of the other hosts of the team, in the order of their IDs.
///
/// They have no part in the rules of `EndpointTable`: nothing here is matched, merged, probed, evicted or saved.
struct RemoteEndpointTable: Sendable {
    /// The limits of the list. They do not count the endpoints of this broker.
    struct Limits: Sendable {
        var total = RemoteRefusals.limitInTotal
        var perHost = RemoteRefusals.limitPerHost
    }

    /// One endpoint. A reference, because a list of references is cheap to sort and to change.
    private final class Entry: Sendable {
        let host: HostName
        let endpoint: Endpoint

        init(_ endpoint: Endpoint, on host: HostName) {
            self.host = host
            self.endpoint = endpoint
        }
    }

    private let limits: Limits
    private var entries: [Entry] = []
    private var counts: [HostName: Int] = [:]
    private(set) var refusals = RemoteRefusals()

    init(limits: Limits = Limits()) { self.limits = limits }

    var count: Int { entries.count }

    /// Returns the endpoint with this ID or former ID.
    subscript(_ id: EndpointID) -> Endpoint? {
        if let index = index(of: id) { return entries[index].endpoint }
        return entries.first { $0.endpoint.formerIDs?.contains(id) == true }?.endpoint
    }

    /// Returns the local endpoints and these, in the order of their IDs, each with the state of its host. `local` is in the
    /// order of the IDs, too.
    func merged(with local: [Endpoint], _ hosts: [HostStatus]) -> [Endpoint] {
        guard !entries.isEmpty else { return local }
        let staleSince = Dictionary(hosts.map { ($0.name, $0.staleSince) }) { $1 }
        var all: [Endpoint] = []
        all.reserveCapacity(local.count + entries.count)
        var waiting = local[...]
        for entry in entries {
            while let next = waiting.first, next.id < entry.endpoint.id { all.append(waiting.removeFirst()) }
            all.append(Self.resolved(entry.endpoint, on: entry.host, since: staleSince[entry.host] ?? nil))
        }
        return all + waiting
    }

    /// Returns an endpoint with the state of its host.
    static func resolved(_ endpoint: Endpoint, _ hosts: [HostStatus]) -> Endpoint {
        guard let name = endpoint.host?.name else { return endpoint }
        return resolved(endpoint, on: name, since: hosts.first { $0.name == name }?.staleSince)
    }

    private static func resolved(_ endpoint: Endpoint, on host: HostName, since: Date?) -> Endpoint {
        guard since != nil else { return endpoint }
        var endpoint = endpoint
        endpoint.host = HostStatus(name: host, staleSince: since)
        return endpoint
    }

    /// Applies a change and returns the changes of the list.
    mutating func apply(_ change: RemoteEndpointChange) -> [EndpointTable.Change] {
        switch change {
        case .put(let endpoint, let host): return put(endpoint.on(host), of: host).map { [$0] } ?? []
        case .remove(let id, let host): return remove(id.on(host)).map { [$0] } ?? []
        case .replaceAll(let endpoints, let host):
            let listed = endpoints.map { $0.on(host) }
            let removed = removeAll(of: host, except: Set(listed.map(\.id)))
            return removed + listed.compactMap { put($0, of: host) }
        case .removeAll(let host): return removeAll(of: host, except: [])
        }
    }

    /// Removes the endpoints of every host.
    mutating func removeAll() -> [EndpointTable.Change] {
        defer { (entries, counts, refusals) = ([], [:], RemoteRefusals()) }
        return entries.map { .removed($0.endpoint) }
    }

    private mutating func put(_ endpoint: Endpoint, of host: HostName) -> EndpointTable.Change? {
        let place = insertionIndex(of: endpoint.id)
        if place < entries.count, entries[place].endpoint.id == endpoint.id {
            var comparable = entries[place].endpoint
            comparable.lastSeenAt = endpoint.lastSeenAt
            entries[place] = Entry(endpoint, on: host)
            return comparable == endpoint ? nil : .changed(endpoint)
        }
        guard counts[host, default: 0] < limits.perHost, entries.count < limits.total else {
            refusals.add(endpoint.id, of: host)
            return nil
        }
        refusals.remove(endpoint.id, of: host)
        entries.insert(Entry(endpoint, on: host), at: place)
        counts[host, default: 0] += 1
        return .added(endpoint)
    }

    private mutating func remove(_ id: EndpointID) -> EndpointTable.Change? {
        if let host = id.host { refusals.remove(id, of: host) }
        guard let index = index(of: id) else { return nil }
        let removed = entries.remove(at: index)
        counts[removed.host, default: 1] -= 1
        return .removed(removed.endpoint)
    }

    private mutating func removeAll(of host: HostName, except kept: Set<EndpointID>) -> [EndpointTable.Change] {
        refusals.removeAll(of: host)
        guard counts[host, default: 0] > 0 else { return [] }
        func isGone(_ entry: Entry) -> Bool { entry.host == host && !kept.contains(entry.endpoint.id) }
        let removed = entries.filter(isGone)
        entries.removeAll(where: isGone)
        let rest = counts[host, default: 0] - removed.count
        counts[host] = rest > 0 ? rest : nil
        return removed.map { .removed($0.endpoint) }
    }

    /// The index of the entry with this ID; nil if there is none.
    private func index(of id: EndpointID) -> Int? {
        let index = insertionIndex(of: id)
        return index < entries.count && entries[index].endpoint.id == id ? index : nil
    }

    /// The index of the first entry whose ID is not before this one.
    private func insertionIndex(of id: EndpointID) -> Int {
        var (low, high) = (0, entries.count)
        while low < high {
            let middle = (low + high) / 2
            if entries[middle].endpoint.id < id { low = middle + 1 } else { high = middle }
        }
        return low
    }
}

/// The endpoints of other hosts that are not listed because of a limit.
package struct RemoteRefusals: Hashable, Sendable {
    /// The maximum number of listed endpoints of all other hosts.
    package static let limitInTotal = 16_384
    /// The maximum number of listed endpoints of one other host.
    package static let limitPerHost = 4_096
    /// The maximum number of IDs that are stored. Further ones are not counted.
    static let capacity = 8_192

    private var ids: [HostName: Set<EndpointID>] = [:]

    /// The number of endpoints that a limit currently excludes.
    package var count: Int { ids.values.reduce(0) { $0 + $1.count } }

    package var isEmpty: Bool { ids.isEmpty }

    /// The hosts with such endpoints.
    package var hosts: [HostName] { ids.keys.sorted() }

    mutating func add(_ id: EndpointID, of host: HostName) {
        guard count < Self.capacity else { return }
        ids[host, default: []].insert(id)
    }

    mutating func remove(_ id: EndpointID, of host: HostName) {
        guard ids[host]?.remove(id) != nil, ids[host]?.isEmpty == true else { return }
        ids[host] = nil
    }

    mutating func removeAll(of host: HostName) { ids[host] = nil }
}

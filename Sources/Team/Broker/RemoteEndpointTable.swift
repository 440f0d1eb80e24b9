import FoundationEssentials
package import Model
import Registry

/// A change of the endpoints of another host, as the team's registry reports it.
package enum RemoteEndpointChange: Sendable {
    /// A new or changed endpoint, as the broker of its host publishes it. `Endpoint.on` converts it.
    case put(Endpoint, of: HostName)
    /// The endpoint with this ID on its host is gone.
    case remove(EndpointID, of: HostName)
    /// The host has left the team, or its broker has ended.
    case removeAll(of: HostName)

    var host: HostName {
        switch self {
        case .put(_, let host), .remove(_, let host), .removeAll(let host): host
        }
    }
}

/// The endpoints of the other hosts of the team, in the order of their IDs.
///
/// They have no part in the rules of `EndpointTable`: nothing here is matched, merged, probed, evicted or saved.
struct RemoteEndpointTable: Sendable {
    /// One endpoint. A reference, because a list of references is cheap to sort and to change.
    private final class Entry: Sendable {
        let host: HostName
        let endpoint: Endpoint

        init(_ endpoint: Endpoint, on host: HostName) {
            self.host = host
            self.endpoint = endpoint
        }
    }

    /// The maximum number of entries. It does not count the endpoints of this broker.
    private let limit: Int
    private var entries: [Entry] = []
    /// The endpoints that wait for room.
    private var refused: [EndpointID: Entry] = [:]

    init(limit: Int = RemoteRefusals.limit) { self.limit = limit }

    var count: Int { entries.count }

    var refusals: RemoteRefusals {
        RemoteRefusals(counts: refused.values.reduce(into: [:]) { $0[$1.host, default: 0] += 1 })
    }

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
        case .remove(let id, let host): return remove(id.on(host))
        case .removeAll(let host): return removeAll(of: host)
        }
    }

    private mutating func put(_ endpoint: Endpoint, of host: HostName) -> EndpointTable.Change? {
        let place = insertionIndex(of: endpoint.id)
        if place < entries.count, entries[place].endpoint.id == endpoint.id {
            var comparable = entries[place].endpoint
            comparable.lastSeenAt = endpoint.lastSeenAt
            entries[place] = Entry(endpoint, on: host)
            return comparable == endpoint ? nil : .changed(endpoint)
        }
        guard entries.count < limit else {
            if refused[endpoint.id] != nil || refused.count < RemoteRefusals.capacity {
                refused[endpoint.id] = Entry(endpoint, on: host)
            }
            return nil
        }
        refused[endpoint.id] = nil
        entries.insert(Entry(endpoint, on: host), at: place)
        return .added(endpoint)
    }

    private mutating func remove(_ id: EndpointID) -> [EndpointTable.Change] {
        refused[id] = nil
        guard let index = index(of: id) else { return [] }
        let removed = entries.remove(at: index)
        return [EndpointTable.Change.removed(removed.endpoint)] + listRefused()
    }

    private mutating func removeAll(of host: HostName) -> [EndpointTable.Change] {
        refused = refused.filter { $0.value.host != host }
        let removed = entries.filter { $0.host == host }
        entries.removeAll { $0.host == host }
        return removed.map { EndpointTable.Change.removed($0.endpoint) } + listRefused()
    }

    /// Removes every entry and returns the changes of the list.
    mutating func removeAll() -> [EndpointTable.Change] {
        defer { (entries, refused) = ([], [:]) }
        return entries.map { .removed($0.endpoint) }
    }

    /// Lists endpoints that wait for room, as far as there is any.
    private mutating func listRefused() -> [EndpointTable.Change] {
        let room = limit - entries.count
        guard room > 0, !refused.isEmpty else { return [] }
        let next = refused.values.sorted { $0.endpoint.id < $1.endpoint.id }.prefix(room)
        return next.compactMap { put($0.endpoint, of: $0.host) }
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

/// The endpoints of other hosts that are not listed, because the list is full. They are listed when there is room.
package struct RemoteRefusals: Hashable, Sendable {
    /// The maximum number of listed endpoints of all other hosts.
    package static let limit = 16_384
    /// The maximum number of endpoints that wait for room. Further ones are neither counted nor listed later.
    static let capacity = 8_192

    /// The number of such endpoints of each host.
    let counts: [HostName: Int]

    package var count: Int { counts.values.reduce(0, +) }

    package var isEmpty: Bool { counts.isEmpty }

    /// The hosts with such endpoints.
    package var hosts: [HostName] { counts.keys.sorted() }
}

extension SourceStatus {
    /// The status of endpoints of other hosts that exceed the limit; nil if there are none.
    package init?(of refusals: RemoteRefusals) {
        guard !refusals.isEmpty else { return nil }
        let hosts = refusals.hosts.map(\.text).joined(separator: ", ")
        self.init(
            name: "list",
            state: .ok,
            detail:
                "endpoints of other hosts are not listed: \(refusals.count) of \(hosts), because the limit is "
                + "\(RemoteRefusals.limit) endpoints",
            hint: "remove offline endpoints there with `patchbay rm`"
        )
    }
}

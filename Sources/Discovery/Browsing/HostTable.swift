/// The hosts of resolved services: their addresses, and the services that use them.
///
/// Each followed host costs two of the client's Avahi objects, the browsers of its A and AAAA records. The number of
/// followed hosts is therefore limited.
struct HostTable: Sendable {
    private struct Host {
        /// True while the host has address browsers.
        let isFollowed: Bool
        /// Each address with the IP version that reported it, because each version reports and withdraws separately.
        var addresses: Set<ReportedAddress> = []
        var users: Set<ServiceKey> = []
    }

    private struct ReportedAddress: Hashable {
        let transport: CInt
        let address: IPAddress
    }

    /// The maximum number of followed hosts. Hosts of split instance names do not count against it.
    let limit: Int
    /// The number of hosts with address browsers.
    private(set) var followedCount = 0
    private var hosts: [HostKey: Host] = [:]

    init(limit: Int) { self.limit = limit }

    var keys: some Collection<HostKey> { hosts.keys }
    var isFull: Bool { followedCount >= limit }

    /// Returns true for a known host without address browsers.
    func isUnfollowed(_ key: HostKey) -> Bool { hosts[key]?.isFollowed == false }

    /// The services that use a host.
    func users(of key: HostKey) -> Set<ServiceKey> { hosts[key]?.users ?? [] }

    /// The addresses of a host, each once.
    func addresses(of key: HostKey) -> Set<IPAddress> { Set(hosts[key]?.addresses.map(\.address) ?? []) }

    /// Records that a service uses a host. Returns true if the host's addresses must be browsed from now on.
    ///
    /// A split instance name has no resolver that could return an address, so its host is followed above the limit.
    mutating func addUser(_ user: ServiceKey, of key: HostKey, isSplit: Bool) -> Bool {
        if hosts[key] != nil {
            hosts[key]?.users.insert(user)
            return false
        }
        let isFollowed = !isFull || isSplit
        hosts[key] = Host(isFollowed: isFollowed, users: [user])
        if isFollowed { followedCount += 1 }
        return isFollowed
    }

    /// Records that a service no longer uses a host. Returns true if the host's addresses must no longer be browsed.
    mutating func removeUser(_ user: ServiceKey, of key: HostKey) -> Bool {
        guard var host = hosts[key] else { return false }
        host.users.remove(user)
        hosts[key] = host.users.isEmpty ? nil : host
        guard host.users.isEmpty, host.isFollowed else { return false }
        followedCount -= 1
        return true
    }

    /// Adds or removes an A or AAAA record, and returns the services that use the host.
    mutating func setAddress(
        _ address: IPAddress,
        of key: HostKey,
        transport: CInt,
        isPresent: Bool
    ) -> Set<ServiceKey> {
        guard hosts[key] != nil else { return [] }
        let reported = ReportedAddress(transport: transport, address: address)
        if isPresent {
            hosts[key]?.addresses.insert(reported)
        } else {
            hosts[key]?.addresses.remove(reported)
        }
        return users(of: key)
    }
}

/// The machines of resolved services: their addresses, and the services that use them.
///
/// Each followed machine costs two of the client's Avahi objects, the browsers of its A and AAAA records. The number of
/// followed machines is therefore limited.
struct MachineTable: Sendable {
    private struct Machine {
        /// True while the machine has address browsers.
        let isFollowed: Bool
        /// Each address with the IP version that reported it, because each version reports and withdraws separately.
        var addresses: Set<ReportedAddress> = []
        var users: Set<ServiceKey> = []
    }

    private struct ReportedAddress: Hashable {
        let transport: CInt
        let address: IPAddress
    }

    /// The maximum number of followed machines. Machines of split instance names do not count against it.
    let limit: Int
    /// The number of machines with address browsers.
    private(set) var followedCount = 0
    private var machines: [MachineKey: Machine] = [:]

    init(limit: Int) { self.limit = limit }

    var keys: some Collection<MachineKey> { machines.keys }
    var isFull: Bool { followedCount >= limit }

    /// Returns true for a known machine without address browsers.
    func isUnfollowed(_ key: MachineKey) -> Bool { machines[key]?.isFollowed == false }

    /// The services that use a machine.
    func users(of key: MachineKey) -> Set<ServiceKey> { machines[key]?.users ?? [] }

    /// The addresses of a machine, each once.
    func addresses(of key: MachineKey) -> Set<IPAddress> { Set(machines[key]?.addresses.map(\.address) ?? []) }

    /// Records that a service uses a machine. Returns true if the machine's addresses must be browsed from now on.
    ///
    /// A split instance name has no resolver that could return an address, so its machine is followed above the limit.
    mutating func addUser(_ user: ServiceKey, of key: MachineKey, isSplit: Bool) -> Bool {
        if machines[key] != nil {
            machines[key]?.users.insert(user)
            return false
        }
        let isFollowed = !isFull || isSplit
        machines[key] = Machine(isFollowed: isFollowed, users: [user])
        if isFollowed { followedCount += 1 }
        return isFollowed
    }

    /// Records that a service no longer uses a machine. Returns true if the machine's addresses must no longer be browsed.
    mutating func removeUser(_ user: ServiceKey, of key: MachineKey) -> Bool {
        guard var machine = machines[key] else { return false }
        machine.users.remove(user)
        machines[key] = machine.users.isEmpty ? nil : machine
        guard machine.users.isEmpty, machine.isFollowed else { return false }
        followedCount -= 1
        return true
    }

    /// Adds or removes an A or AAAA record, and returns the services that use the machine.
    mutating func setAddress(
        _ address: IPAddress,
        of key: MachineKey,
        transport: CInt,
        isPresent: Bool
    ) -> Set<ServiceKey> {
        guard machines[key] != nil else { return [] }
        let reported = ReportedAddress(transport: transport, address: address)
        if isPresent {
            machines[key]?.addresses.insert(reported)
        } else {
            machines[key]?.addresses.remove(reported)
        }
        return users(of: key)
    }
}

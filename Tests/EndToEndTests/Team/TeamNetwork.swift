import TestSupport

/// Two hosts of a team and three etcd servers, each in a network namespace of its own, connected by a switch.
struct TeamNetwork {
    let hosts: [NetworkHost]
    let etcdHosts: [NetworkHost]
    private let fabric: NetworkSwitch

    init(in scratch: ScratchFolder) async throws {
        fabric = try await NetworkSwitch(in: scratch)
        var all: [NetworkHost] = []
        for number in 1...5 {
            let address = NetworkSwitch.address(of: number)
            all.append(NetworkHost(address: address, namespace: try await fabric.connect(number)))
        }
        hosts = Array(all[..<2])
        etcdHosts = Array(all[2...])
    }

    /// Drops what the two hosts send to each other. Both reach etcd.
    func separateHosts() async throws { try await fabric.setIsolated(true, [1, 2]) }

    /// Drops all between `lab1` and the others: `lab2` and etcd.
    func cutOffLab1() async throws { try await fabric.setCutOff(true, 1) }

    /// Ends what `separateHosts()` or `cutOffLab1()` began.
    func repair() async throws {
        try await fabric.setCutOff(false, 1)
        try await fabric.setIsolated(false, [1, 2])
    }
}

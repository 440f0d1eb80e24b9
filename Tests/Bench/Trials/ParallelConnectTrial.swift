import TestSupport

/// Measures the rate of connections that are opened 16 at a time.
struct ParallelConnectTrial: Trial {
    private static let clients = 16
    private static let limit = Duration.seconds(5)

    /// The number of groups.
    let count: Int

    var topic: Topic { .connect }

    /// usbmuxd's accept queue is shorter than a group, so that only a forwarder with retries passes there.
    func suits(_ kind: ForwarderKind, on bed: TestBed.Kind) -> Bool {
        bed == .plain && [.tcp, .iproxy, .socat, .patchbay].contains(kind)
    }

    func run(_ forwarder: Forwarder) throws -> [Reading] {
        let metric = Metric("connect + echo + close, \(Self.clients) at a time", "/s")
        let address = try forwarder.address(of: .echo)
        let start = ContinuousClock.now
        for _ in 0..<count {
            var clients = try ConcurrentClients(Self.clients, through: address)
            clients.waitForEchoes(until: .now + Self.limit)
            guard clients.echoed == Self.clients else { return [Reading(metric, nil, note: clients.causes)] }
        }
        return [Reading(metric, Double(count * Self.clients) / (ContinuousClock.now - start).seconds)]
    }
}

import Model
import Rig
import Testing

@Suite(.needs(.root, .namespaces, .avahi, .python)) struct FloodTests {
    /// More names than these and avahi-daemon itself is the limit: its cache has 4,096 places, and it compares each new name
    /// of a type with all others.
    @Test func `a new service is listed in the midst of 3,500 names of its own type that nobody answers for`()
        async throws
    {
        try await withScratchFolder { scratch in
            let network = try await MDNSNetwork(["here", "there", "attacker"], in: scratch)
            let (here, there, attacker) = (network.hosts[0], network.hosts[1], network.hosts[2])
            // Their daemons would take the processor's time that the broker's needs.
            for host in [there, attacker] { try await host.stopAvahi() }
            let broker = try await RunningBroker(in: scratch, host: here, isInside: true)
            let list = try await LiveList(of: broker)
            let flood = try await RawAnnouncement.flood(3_500, perSecond: 300, from: "10.99.0.3", on: attacker)
            try await flood.waitForLine("sent 1000")

            let start = ContinuousClock.now
            try await RawAnnouncement.service("Lab", at: "10.99.0.2", on: there)
            let listed = try await list.first("it is listed") { $0.name.text == "Lab" }

            print("in a flood of 300 names a second a new service was listed after \(listed.time - start)")
            #expect(!flood.transcript.soFar.contains { $0.text == "sent all" })
        }
    }
}

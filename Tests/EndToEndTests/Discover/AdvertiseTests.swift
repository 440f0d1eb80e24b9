import Discovery
import Model
import TestSupport
import Testing

extension Discover {
    @Suite(.scratchFolder) struct AdvertiseTests {
        private let scratch = ScratchFolder.current
        private let txt = TXTRecord(items: ["zeta=1", "alpha", "empty="].map { Array($0.utf8) })

        @Test(.needs(.python))
        func `an advertisement arrives with its TXT record in order, is updated, and ends with a goodbye`()
            async throws
        {
            let host = try await BusSwitch.startHost(in: scratch)
            let peer = try await ZeroconfPeer.browsing("_debug._tcp", on: host, in: scratch)
            try await RunningSource.with { running in
                let spec = AdvertisementSpec(name: "Ours", type: .debug, port: 4711, txt: txt)
                let advertisement = try await running.source.advertise(spec)
                #expect(advertisement.state == .published)
                #expect(advertisement.publishedName.text == "Ours")
                try await peer.program.waitForLine(
                    "Added Ours 4711 " + ZeroconfPeer.hex(["zeta=1", "alpha", "empty="])
                )

                var newer = txt
                newer.set("zeta", to: Array("2".utf8))
                newer.set("last", to: Array("x".utf8))
                let updated = try await running.source.update(advertisement.id, txt: newer)
                #expect(updated.spec.txt == newer)
                try await peer.program.waitForLine(
                    "Updated Ours 4711 " + ZeroconfPeer.hex(["zeta=2", "alpha", "empty=", "last=x"])
                )

                try await running.source.withdraw(advertisement.id)
                try await peer.program.waitForLine("Removed Ours")
                #expect(await running.source.advertisements().isEmpty)
                #expect(running.listed.isEmpty)
            }
        }

        @Test func `own advertisements are not listed, those of other programs on the machine are`() async throws {
            let host = try await BusSwitch.startHost(in: scratch)
            try await RunningSource.with { running in
                _ = try await running.source.advertise(AdvertisementSpec(name: "Ours", type: .debug, port: 1))
                _ = try await host.start("avahi-publish-service", ["Theirs", "_debug._tcp", "2"])

                try await running.awaits("Theirs")
                #expect(Set(running.listed.map(\.name.text)) == ["Theirs"])
            }
        }

        @Test func `a name in use on this machine is changed, and the published name is reported`() async throws {
            let host = try await BusSwitch.startHost(in: scratch)
            let other = try await host.start("avahi-publish-service", ["Demo", "_debug._tcp", "2"])
            try await other.waitForLine("Established")
            try await RunningSource.with { running in
                let advertisement = try await running.source.advertise(
                    AdvertisementSpec(name: "Demo", type: .debug, port: 3)
                )

                #expect(advertisement.state == .published)
                #expect(advertisement.publishedName.text == "Demo #2")
            }
        }

        @Test func `a name in use on another machine is changed, and the published name is reported`() async throws {
            let network = try await MDNSNetwork(["here", "there"], in: scratch)
            BusSwitch.point(to: network.hosts[0])
            let other = try await network.hosts[1].start("avahi-publish-service", ["Demo", "_debug._tcp", "2"])
            try await other.waitForLine("Established")
            try await RunningSource.with { running in
                let advertisement = try await running.source.advertise(
                    AdvertisementSpec(name: "Demo", type: .debug, port: 3)
                )

                #expect(advertisement.state == .published)
                #expect(advertisement.publishedName.text == "Demo #2")
            }
        }

        @Test func `a name in use on another machine is changed even for a type without a browser`() async throws {
            let network = try await MDNSNetwork(["here", "there"], in: scratch)
            BusSwitch.point(to: network.hosts[0])
            let other = try await network.hosts[1].start("avahi-publish-service", ["Demo", "_debug._tcp", "2"])
            try await other.waitForLine("Established")
            try await RunningSource.with(options: DiscoveryOptions(types: [.mcp], denied: [])) { running in
                let advertisement = try await running.source.advertise(
                    AdvertisementSpec(name: "Demo", type: .debug, port: 3)
                )

                #expect(advertisement.state == .published)
                #expect(advertisement.publishedName.text == "Demo #2")
            }
        }

        @Test func `the maximum number of services is published, each in its own entry group`() async throws {
            _ = try await BusSwitch.startHost(in: scratch)
            try await RunningSource.with { running in
                try await running.awaits(.sourceReconciled(.bonjour))
                try await withThrowingTaskGroup(of: Advertisement.self) { group in
                    for number in UInt16(1)...32 {
                        group.addTask {
                            try await running.source.advertise(
                                AdvertisementSpec(name: "S\(number)", type: .mcp, port: number)
                            )
                        }
                    }
                    for try await advertisement in group { #expect(advertisement.state == .published) }
                }
                await #expect(throws: DiscoveryError.tooManyAdvertisements(limit: 32)) {
                    _ = try await running.source.advertise(AdvertisementSpec(name: "S33", type: .mcp, port: 33))
                }
            }
        }
    }
}

import Discovery
import Model
import TestSupport
import Testing

extension Discover {
    @Suite(.scratchFolder) struct BrowseTests {
        private let scratch = ScratchFolder.current

        @Test func `an app is listed with its address and TXT record, and removed after its goodbye`()
            async throws
        {
            let host = try await BusSwitch.startHost(in: scratch)
            try await RunningSource.with { running in
                try await running.awaits(.sourceReconciled(.bonjour))
                let app = try await host.start(
                    "avahi-publish-service",
                    [
                        "AppReveal-com.example.shop", "_appreveal._tcp", "8123", "zeta=1", "alpha",
                        "bundleId=com.example.shop",
                    ]
                )

                let sighting = try await running.awaits("AppReveal-com.example.shop")
                #expect(sighting.app.text == "com.example.shop")
                #expect(sighting.appIsBundleID)
                #expect(sighting.kind == .appreveal)
                #expect(sighting.machine?.text == "rig.local")
                #expect(sighting.txt.entries.map(\.key) == ["zeta", "alpha", "bundleId"])
                #expect(sighting.routes.map(\.description).contains("127.0.0.1:8123"))
                #expect(await running.source.status().state == .ok)

                app.terminate()
                try await running.awaitsGone("AppReveal-com.example.shop")
            }
        }

        @Test func `a type that is browsed twice gives one entry, and a goodbye removes it`() async throws {
            let host = try await BusSwitch.startHost(in: scratch)
            let options = DiscoveryOptions(types: [.appreveal, .mcp, .appreveal, .appreveal], denied: [])
            for _ in 0..<3 {
                try await RunningSource.with(options: options) { running in
                    try await running.awaits(.sourceReconciled(.bonjour))
                    let app = try await host.start(
                        "avahi-publish-service",
                        ["AppReveal-com.example.shop", "_appreveal._tcp", "8123"]
                    )
                    try await running.awaits("AppReveal-com.example.shop")
                    #expect(running.listed.count == 1)
                    app.terminate()
                    try await running.awaitsGone("AppReveal-com.example.shop")
                }
            }
        }

        @Test(.needs(.python))
        func `an app on another mDNS stack is listed, and removed after its goodbye`() async throws {
            let host = try await BusSwitch.startHost(in: scratch)
            try await RunningSource.with { running in
                let peer = try await ZeroconfPeer.publishing(
                    "Anna's Mac",
                    "_debug._tcp",
                    4711,
                    ["b=2", "a=1"],
                    on: host,
                    in: scratch
                )

                let sighting = try await running.awaits("Anna's Mac")
                #expect(sighting.txt.entries.map(\.key) == ["b", "a"])
                #expect(sighting.routes.map(\.description) == ["127.0.0.1:4711"])

                try await peer.leave()
                try await running.awaitsGone("Anna's Mac")
            }
        }

        @Test func `AppReveal's malformed Flutter advert is listed, updated with a new port and removed`() async throws
        {
            let host = try await BusSwitch.startHost(in: scratch)
            try await RunningSource.with { running in
                try await running.awaits(.sourceReconciled(.bonjour))
                try await RawAnnouncement.send(RawAnnouncement.flutter(port: 9001), on: host)

                let sighting = try await running.awaits("AppReveal-com.example.flutter")
                #expect(sighting.app.text == "com.example.flutter")
                #expect(sighting.version?.text == "1.0")
                #expect(sighting.routes.map(\.description) == ["127.0.0.1:9001"])

                try await RawAnnouncement.send(RawAnnouncement.flutter(port: 9002), on: host)
                try await running.awaits("AppReveal-com.example.flutter") { $0.routes.map(\.port) == [9002] }

                try await RawAnnouncement.send(RawAnnouncement.flutter(port: 9002, ttl: 0), on: host)
                try await running.awaitsGone("AppReveal-com.example.flutter")
            }
        }

        @Test func `port 0 is refused and counted, and a real port afterwards is listed`() async throws {
            let host = try await BusSwitch.startHost(in: scratch)
            try await RunningSource.with { running in
                try await running.awaits(.sourceReconciled(.bonjour))
                try await RawAnnouncement.send(RawAnnouncement.service("'nowhere'", port: 0), on: host)

                try await eventually("the refusal is counted") {
                    await running.source.status().detail.contains("1 refused")
                }
                #expect(running.listed.isEmpty)

                // A record received less than 1 s ago is not replaced (RFC 6762, section 10.2), and Avahi restarts
                // that second at each repetition. The record is therefore sent twice, well apart.
                try await RawAnnouncement.send(RawAnnouncement.service("'nowhere'", port: 99), on: host)
                _ = try? await running.awaits("nowhere", within: .seconds(2))
                try await RawAnnouncement.send(RawAnnouncement.service("'nowhere'", port: 99), on: host)
                try await running.awaits("nowhere")
            }
        }

        @Test func `names with escapes, line breaks and invalid bytes are sanitized and break nothing`()
            async throws
        {
            let host = try await BusSwitch.startHost(in: scratch)
            try await RunningSource.with { running in
                try await running.awaits(.sourceReconciled(.bonjour))
                for bad in [#"b'\xff\xfe'"#, #"b'nul\x00'"#, "'a' * 63"] {
                    try await RawAnnouncement.send(RawAnnouncement.service(bad, port: 5), on: host)
                }
                // A record that claims more bytes than it has, and one of 8.9 kB.
                try await RawAnnouncement.send(RawAnnouncement.service("'cut'", port: 5, txt: #"b'\xffabc'"#), on: host)
                try await RawAnnouncement.send(
                    RawAnnouncement.service("'big'", port: 5, txt: "txt(*['k%d=' % i + 'x' * 200 for i in range(43)])"),
                    on: host
                )
                try await RawAnnouncement.send(
                    RawAnnouncement.service(#"'x\x1b[31m\ny'"#, port: 6, txt: #"txt('a=\x1b', '=v', 'A=2')"#),
                    on: host
                )

                let sighting = try await running.awaits("x\u{FFFD}[31m\u{FFFD}y")
                #expect(sighting.txt.entries.map(\.key) == ["a"])
                let big = try await running.awaits("big")
                #expect(big.txt.isTruncated)
                for sighting in running.listed {
                    #expect(sighting.name.text.unicodeScalars.allSatisfy { $0.value >= 0x20 })
                    #expect(sighting.id.key.utf8.allSatisfy { (0x21...0x7E).contains($0) })
                }
            }
        }

        @Test(.needs(.python))
        func `500 services of a peer are all listed within 10 s`() async throws {
            let host = try await BusSwitch.startHost(in: scratch)
            try await RunningSource.with { running in
                try await running.awaits(.sourceReconciled(.bonjour))
                _ = try await ZeroconfPeer.publishing(
                    "app",
                    "_debug._tcp",
                    4711,
                    ["v=1"],
                    count: 500,
                    on: host,
                    in: scratch
                )

                try await eventually("500 are listed") { running.listed.count == 500 }
            }
        }

        @Test func `500 services on 500 hosts are all listed, above the limit of tracked hosts`() async throws {
            let host = try await BusSwitch.startHost(in: scratch)
            try await RunningSource.with { running in
                try await running.awaits(.sourceReconciled(.bonjour))
                let start = ContinuousClock.now
                try await RawAnnouncement.crowd(500, on: host)

                try await eventually("500 are listed") { running.listed.count == 500 }
                print("500 hosts are listed after \(ContinuousClock.now - start)")
            }
        }

        @Test func `a change 0.5 s after the advert is listed within 4 s`() async throws {
            let host = try await BusSwitch.startHost(in: scratch)
            try await RunningSource.with { running in
                try await running.awaits(.sourceReconciled(.bonjour))
                for round in 0..<3 {
                    let name = "hasty-\(round)"
                    try await RawAnnouncement.send(RawAnnouncement.service("'\(name)'", port: 5), on: host)
                    try await running.awaits(name)
                    try await Task.sleep(for: .milliseconds(300))
                    let changed = RawAnnouncement.service("'\(name)'", port: 6, txt: "txt('v=2')")
                    try await RawAnnouncement.send(changed, on: host)

                    try await running.awaits(name, within: .seconds(4)) {
                        $0.routes.map(\.port) == [6] && $0.txt["v"] == "2"
                    }
                }
            }
        }

        @Test func `an off-link host is listed as blocked, and removed with its link`() async throws {
            let (here, there) = try await MDNSNetwork.pair("here", "there", in: scratch)
            BusSwitch.point(to: here)
            try await RunningSource.with { running in
                let app = try await there.start("avahi-publish-service", ["far", "_debug._tcp", "4711"])

                // Avahi runs in that network namespace, this process does not.
                let sighting = try await running.awaits("far") { $0.blocked != nil }
                #expect(sighting.routes.isEmpty)
                #expect(
                    sighting.blocked?.contains("is not on the network link that the advertisement came from")
                        == true
                )
                #expect(sighting.machine?.text == "there.local")

                try await here.linkDown()
                try await running.awaitsGone("far", within: .seconds(3))
                try await here.linkUp()
                try await running.awaits("far")
                app.terminate()
                try await running.awaitsGone("far")
            }
        }
    }
}

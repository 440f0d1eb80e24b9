import Discovery
import Glibc
import Model
import TestSupport
import Testing

extension Discover {
    @Suite(.scratchFolder) struct OutageTests {
        private let scratch = ScratchFolder.current

        @Test func `a killed avahi-daemon is reported, and all services return with its restart`() async throws {
            let host = try await BusSwitch.startHost(in: scratch)
            try await RunningSource.with { running in
                _ = try await host.start("avahi-publish-service", ["-f", "Theirs", "_debug._tcp", "2"])
                let ours = try await running.source.advertise(AdvertisementSpec(name: "Ours", type: .debug, port: 1))
                try await running.awaits("Theirs")

                try await host.killAvahi()
                let lost = try await running.awaits(.sourceLost(.bonjour), within: .seconds(3))
                try await running.awaitsState(.missing)
                #expect(await running.source.advertisements().map(\.state) == [.waiting])

                try await host.startAvahi()
                try await running.awaits(.sourceReconciled(.bonjour), after: lost)
                try await running.awaits("Theirs")
                try await eventually("ours is published again") {
                    await running.source.advertisements().first?.state == .published
                }
                #expect(await running.source.advertisements().first?.publishedName == ours.publishedName)
                #expect(
                    try await host.run("avahi-browse", ["-pt", "_debug._tcp"]).contains { $0.contains(";Ours;") }
                )
                #expect(running.sighting("Ours") == nil)
            }
        }

        @Test func `discovery recovers from a killed D-Bus`() async throws {
            let host = try await BusSwitch.startHost(in: scratch)
            try await RunningSource.with { running in
                _ = try await running.source.advertise(AdvertisementSpec(name: "Ours", type: .debug, port: 1))
                try await running.awaits(.sourceReconciled(.bonjour))

                try await host.killBus()
                let lost = try await running.awaits(.sourceLost(.bonjour), within: .seconds(3))
                try await running.awaitsState(.missing)

                try await host.startBus()
                try await host.startAvahi()
                try await running.awaits(.sourceReconciled(.bonjour), after: lost, within: .seconds(15))
                try await eventually("ours is published again") {
                    await running.source.advertisements().first?.state == .published
                }
            }
        }

        @Test
        func `without D-Bus discovery starts idle, reports what is missing, and begins when the bus is available`()
            async throws
        {
            let host = try await AvahiHost(in: scratch)
            try await host.killBus()
            BusSwitch.point(to: host)
            try await RunningSource.with { running in
                try await running.awaitsState(.missing)
                #expect(await running.source.status().hint != nil)
                let advertisement = try await running.source.advertise(
                    AdvertisementSpec(name: "Ours", type: .debug, port: 1)
                )
                #expect(advertisement.state == .waiting && advertisement.reason != nil)
                let before = Self.cpuTime()
                try await Task.sleep(for: .seconds(3))
                #expect(Self.cpuTime() - before < .milliseconds(300))

                try await host.startBus()
                try await host.startAvahi()
                try await running.awaitsState(.ok)
                try await eventually("it is published") {
                    await running.source.advertisements().first?.state == .published
                }
            }
        }

        @Test(.tags(.slow))
        func `a hung avahi-daemon is detected, calls return meanwhile, and discovery recovers`() async throws {
            let host = try await BusSwitch.startHost(in: scratch)
            try await RunningSource.with(heartbeat: .seconds(1)) { running in
                try await running.awaits(.sourceReconciled(.bonjour))
                await host.freezeAvahi()
                try await running.awaitsState(.starting)
                #expect(await running.source.status().detail.contains("not answered"))
                let clock = ContinuousClock()
                let took = try await clock.measure {
                    _ = try await running.source.advertise(AdvertisementSpec(name: "Ours", type: .debug, port: 1))
                }
                #expect(took < .seconds(7))
                let lost = try await running.awaits(.sourceLost(.bonjour), within: .seconds(40))

                await host.thawAvahi()

                try await running.awaits(.sourceReconciled(.bonjour), after: lost, within: .seconds(50))
                try await eventually("ours is published") {
                    await running.source.advertisements().first?.state == .published
                }
            }
        }

        @Test func `a hung avahi-daemon is reported within 3 s`() async throws {
            let host = try await BusSwitch.startHost(in: scratch)
            try await RunningSource.with { running in
                try await running.awaits(.sourceReconciled(.bonjour))
                await host.freezeAvahi()
                let start = ContinuousClock.now

                try await running.awaitsState(.starting, within: .milliseconds(3_500))

                print("a hung avahi-daemon is reported after \(ContinuousClock.now - start)")
                #expect(await running.source.status().detail.contains("not answered"))
                await host.thawAvahi()
            }
        }

        @Test func `a source stops while Avahi hangs`() async throws {
            let host = try await BusSwitch.startHost(in: scratch)
            let clock = ContinuousClock()
            let stopping = try await RunningSource.with(heartbeat: .seconds(1)) { running in
                try await running.awaits(.sourceReconciled(.bonjour))
                await host.freezeAvahi()
                try await running.awaitsState(.starting)
                return clock.now
            }

            #expect(stopping.duration(to: clock.now) < .seconds(1))
            await host.thawAvahi()
        }

        @Test func `200 starts and stops leave no descriptor, thread or memory behind`() async throws {
            let host = try await BusSwitch.startHost(in: scratch)
            _ = try await host.start("avahi-publish-service", ["Theirs", "_debug._tcp", "2"])
            var after10 = Footprint.now()
            for cycle in 1...200 {
                try await RunningSource.with { running in
                    try await running.awaits("Theirs")
                    // The advertisement is published or pending when the source stops.
                    if cycle % 20 == 0 {
                        _ = try await running.source.advertise(AdvertisementSpec(name: "Ours", type: .debug, port: 1))
                    }
                }
                if cycle == 10 { after10 = Footprint.now() }
            }

            let end = Footprint.now()
            #expect(end.descriptors <= after10.descriptors + 2)
            #expect(end.threads <= after10.threads + 2)
            #expect(end.kilobytes < after10.kilobytes + 20_000)
        }

        private static func cpuTime() -> Duration {
            var usage = rusage()
            getrusage(RUSAGE_SELF.rawValue, &usage)
            return .seconds(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec)
                + .microseconds(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec)
        }
    }
}

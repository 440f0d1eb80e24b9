import Devices
import Model
import SystemIO
import TestSupport
import Testing

/// The promises of both clients, tested with the unmodified usbmuxd.
@Suite(.needs(.usbmuxd), .timeLimit(.minutes(3)), .scratchFolder) struct DeviceConformanceTests {
    private let scratch = ScratchFolder.current

    @Test(arguments: DeviceClientKind.allCases)
    func `phones are listed by UDID, plugged, pulled and plugged again`(kind: DeviceClientKind) async throws {
        let rig = try await UsbmuxdFixture([Phones.one], in: scratch)
        try await withDeviceSource(of: rig, kind.client(of: rig)) { source in
            try await source.lists([Phones.one])

            try await rig.attach(Phones.two)
            try await source.lists([Phones.one, Phones.two], within: .seconds(1))
            try await rig.detach(Phones.one)
            try await source.lists([Phones.two], within: .seconds(1))
            try await rig.attach(Phones.one)
            try await source.lists([Phones.one, Phones.two], within: .seconds(1))

            let status = await source.status()
            #expect(status.state == .ok)
            #expect(status.detail.contains("2 phones"))
        }
    }

    @Test(arguments: DeviceClientKind.allCases)
    func `a stream carries every byte both ways`(kind: DeviceClientKind) async throws {
        let rig = try await UsbmuxdFixture([Phones.one], in: scratch)
        let app = try EchoServer(in: scratch)
        try await withDeviceSource(of: rig, kind.client(of: rig)) { source in
            try await source.lists([Phones.one])

            #expect(try await source.planner.echoes(Phones.route(Phones.one, app.port), Pattern.bytes(0..<60_000)))
        }
    }

    @Test(arguments: DeviceClientKind.allCases)
    func `300 consecutive streams all work without a delay`(kind: DeviceClientKind) async throws {
        let rig = try await UsbmuxdFixture([Phones.one], in: scratch)
        let app = try EchoServer(in: scratch)
        try await withDeviceSource(of: rig, kind.client(of: rig)) { source in
            try await source.lists([Phones.one])
            let route = try Phones.route(Phones.one, app.port)

            var slowest = Duration.zero
            for _ in 0..<300 {
                let start = ContinuousClock.now
                #expect(try await source.planner.echoes(route))
                slowest = max(slowest, ContinuousClock.now - start)
            }
            #expect(slowest < .seconds(1))
        }
    }

    @Test(arguments: DeviceClientKind.allCases)
    func `a closed port and an absent phone are different errors`(kind: DeviceClientKind) async throws {
        let rig = try await UsbmuxdFixture([Phones.one], in: scratch)
        let app = try EchoServer(in: scratch)
        app.stop()
        let client = kind.client(of: rig)
        try await withDeviceSource(of: rig, client) { source in
            try await source.lists([Phones.one])

            try await eventually("the app's port is free") {
                try await source.planner.failure(of: Phones.route(Phones.one, app.port))?.reason == .refused
            }
            let absent = try await source.planner.failure(of: Phones.route(Phones.two, app.port))
            #expect(absent?.reason == .deviceAbsent)
            #expect(absent?.description.contains(Phones.two) == true)
        }
    }

    @Test(arguments: DeviceClientKind.allCases)
    func `a connect to a phone that never answers times out`(kind: DeviceClientKind) async throws {
        let rig = try await UsbmuxdFixture(in: scratch)
        try await rig.attach(Phones.one, .fault(.silentConnect))
        let client = kind.client(of: rig, connectTimeout: .seconds(1))
        try await withDeviceSource(of: rig, client) { source in
            try await source.lists([Phones.one])
            let start = ContinuousClock.now

            #expect(try await source.planner.failure(of: Phones.route(Phones.one, 80))?.reason == .timedOut)

            #expect(ContinuousClock.now - start < .seconds(8))
        }
    }

    @Test(arguments: DeviceClientKind.allCases)
    func `unplugging a phone ends its streams`(kind: DeviceClientKind) async throws {
        let rig = try await UsbmuxdFixture([Phones.one], in: scratch)
        let app = try EchoServer(in: scratch)
        try await withDeviceSource(of: rig, kind.client(of: rig)) { source in
            try await source.lists([Phones.one])
            let route = try Phones.route(Phones.one, app.port)
            let carrier = try await source.planner.dial(route)
            try await carrier.send([7])
            #expect(try await carrier.receive(1) == [7])

            try await rig.detach(Phones.one)

            #expect(try await carrier.receive(1) == [])
            try await source.lists([])
            #expect(try await source.planner.failure(of: route)?.reason == .deviceAbsent)
        }
    }

    @Test(arguments: DeviceClientKind.allCases)
    func `usbmuxd may start later and is found within 1.5 s`(kind: DeviceClientKind) async throws {
        let rig = try await UsbmuxdFixture([Phones.one], in: scratch)
        try await rig.kill()
        try await withDeviceSource(of: rig, kind.client(of: rig)) { source in
            try await eventually("the absence is said") { await source.status().state == .missing }
            let failure = try await source.planner.failure(of: Phones.route(Phones.one, 80))
            #expect(failure?.reason == .usbmuxdAbsent)

            try await rig.start()

            try await source.lists([Phones.one], within: .milliseconds(1500))
        }
    }

    @Test(arguments: DeviceClientKind.allCases)
    func `device events stay in order across a restart`(kind: DeviceClientKind) async throws {
        let rig = try await UsbmuxdFixture([Phones.one], in: scratch)
        try await withDeviceSource(of: rig, kind.client(of: rig)) { source in
            var events = source.events.makeAsyncIterator()
            var told: [String] = []
            while told.filter({ $0 == "ready" }).count < 1 { told.append(Self.name(of: await events.next())) }
            if told.count < 2 { told.append(Self.name(of: await events.next())) }

            try await rig.restart()

            while told.filter({ $0 == "ready" }).count < 2 { told.append(Self.name(of: await events.next())) }
            #expect(Set(told.prefix(2)) == ["attached", "ready"])
            // usbmuxd may still report the detach while it shuts down.
            let after = told.dropFirst(2).filter { $0 != "detached" }
            #expect(after.first == "lost")
            #expect(Set(after.dropFirst()).isSubset(of: ["attached", "ready"]))
            try await source.lists([Phones.one])
        }
    }

    private static func name(of event: DeviceEvent?) -> String {
        switch event {
        case .attached: "attached"
        case .detached: "detached"
        case .paired: "paired"
        case .usbmuxdLost: "lost"
        case .usbmuxdReady: "ready"
        case nil: "end"
        }
    }
}

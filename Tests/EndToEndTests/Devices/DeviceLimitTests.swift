import Devices
import FoundationEssentials
import Glibc
import Model
import SystemIO
import TestSupport
import Testing

/// The limits of usbmuxd, libusbmuxd and the process.
@Suite(.needs(.usbmuxd), .timeLimit(.minutes(3)), .scratchFolder) struct DeviceLimitTests {
    private let scratch = ScratchFolder.current

    @Test func `a burst of 64 connects succeeds despite usbmuxd's backlog of 5`() async throws {
        let rig = try await UsbmuxdFixture([Phones.one], in: scratch)
        let app = try EchoServer(in: scratch)
        try await withDeviceSource(of: rig, DeviceClientKind.native.client(of: rig)) { source in
            try await source.lists([Phones.one])
            let route = try Phones.route(Phones.one, app.port)

            let echoed = try await withThrowingTaskGroup(of: Bool.self) { group in
                for _ in 0..<64 { group.addTask { try await source.planner.echoes(route) } }
                return try await group.reduce(0) { $0 + ($1 ? 1 : 0) }
            }

            #expect(echoed == 64)
        }
    }

    @Test func `a phone that does not answer delays no other phone`() async throws {
        let rig = try await UsbmuxdFixture([Phones.one], in: scratch)
        try await rig.attach(Phones.two, .fault(.silentConnect))
        let app = try EchoServer(in: scratch)
        let client = DeviceClientKind.native.client(of: rig, connectTimeout: .seconds(8))
        try await withDeviceSource(of: rig, client) { source in
            try await source.lists([Phones.one, Phones.two])
            let (good, silent) = (try Phones.route(Phones.one, app.port), try Phones.route(Phones.two, app.port))
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<50 {
                    group.addTask {
                        let failure = try await source.planner.failure(of: silent)
                        #expect(failure?.reason == .timedOut)
                    }
                }
                let start = ContinuousClock.now
                for _ in 0..<20 { #expect(try await source.planner.echoes(good)) }
                #expect(ContinuousClock.now - start < .seconds(6))
                try await group.waitForAll()
            }
        }
    }

    @Test func `a connect over the stream limit is refused, and usbmuxd survives`() async throws {
        let rig = try await UsbmuxdFixture([Phones.one], in: scratch)
        let app = try EchoServer(in: scratch)
        let connectionLimit = FairLimiter<UDID>(limit: 3)
        let client = NativeUsbmuxClient(
            address: .unix(path: rig.socketPath),
            connectionLimit: connectionLimit,
            connectTimeout: .milliseconds(500)
        )
        try await withDeviceSource(of: rig, client) { source in
            try await source.lists([Phones.one])
            let route = try Phones.route(Phones.one, app.port)
            do {
                let one = try await source.planner.dial(route)
                let two = try await source.planner.dial(route)
                let three = try await source.planner.dial(route)
                let refusal = try await source.planner.failure(of: route)
                #expect(refusal?.reason == .limit)
                #expect(refusal?.description.contains("3 streams") == true)
                #expect(connectionLimit.count == 3)
                // Keeps the three streams open until this point.
                _ = (one.descriptor.number, two.descriptor.number, three.descriptor.number)
            }
            #expect(connectionLimit.count == 0)
            #expect(try await source.planner.echoes(route))
        }
    }

    @Test func `200 device sources, started and stopped, leave no resources behind`() async throws {
        let rig = try await UsbmuxdFixture([Phones.one], in: scratch)
        let app = try EchoServer(in: scratch)
        let route = try Phones.route(Phones.one, app.port)
        func cycle() async throws {
            try await withDeviceSource(of: rig, DeviceClientKind.native.client(of: rig)) { source in
                try await source.lists([Phones.one])
                #expect(try await source.planner.echoes(route))
            }
        }
        func count(_ what: String) throws -> Int {
            try FileManager.default.contentsOfDirectory(atPath: "/proc/self/\(what)").count
        }
        try await cycle()
        let before = (descriptors: try count("fd"), threads: try count("task"))

        for _ in 0..<200 { try await cycle() }

        // Other tests run at the same time; a leak in each cycle would still exceed this margin.
        try await eventually("descriptors are as many as before") { try count("fd") < before.descriptors + 100 }
        try await eventually("threads are as many as before") { try count("task") < before.threads + 100 }
    }
}

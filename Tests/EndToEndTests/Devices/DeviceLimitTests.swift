import Devices
import FoundationEssentials
import Glibc
import Model
import TestSupport
import SystemIO
import Testing

/// What happens at the edges of usbmuxd, of libusbmuxd and of the process.
@Suite(.needs(.usbmuxd), .timeLimit(.minutes(3))) struct DeviceLimitTests {
    @Test func `a burst of 64 dials on usbmuxd's 5 places all succeed`() async throws {
        try await withScratchFolder { scratch in
            let rig = try await PhoneRig([Phones.one], in: scratch)
            let app = try EchoServer(in: scratch)
            try await withDeviceSource(of: rig, DeviceClientKind.native.client(of: rig)) { source in
                try await source.lists([Phones.one])
                let route = try Phones.route(Phones.one, app.port)

                let echoed = try await withThrowingTaskGroup(of: Bool.self) { group in
                    for _ in 0..<64 { group.addTask { try await source.dialer.echoes(route) } }
                    return try await group.reduce(0) { $0 + ($1 ? 1 : 0) }
                }

                #expect(echoed == 64)
            }
        }
    }

    @Test func `a silent phone delays no other phone`() async throws {
        try await withScratchFolder { scratch in
            let rig = try await PhoneRig([Phones.one], in: scratch)
            try await rig.attach(Phones.two, .fault(.silentConnect))
            let app = try EchoServer(in: scratch)
            let client = DeviceClientKind.native.client(of: rig, connectLimit: .seconds(8))
            try await withDeviceSource(of: rig, client) { source in
                try await source.lists([Phones.one, Phones.two])
                let (good, silent) = (try Phones.route(Phones.one, app.port), try Phones.route(Phones.two, app.port))
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for _ in 0..<50 {
                        group.addTask {
                            let failure = try await source.dialer.failure(of: silent)
                            #expect(failure?.reason == .timedOut)
                        }
                    }
                    let start = ContinuousClock.now
                    for _ in 0..<20 { #expect(try await source.dialer.echoes(good)) }
                    #expect(ContinuousClock.now - start < .seconds(6))
                    try await group.waitForAll()
                }
            }
        }
    }

    @Test func `beyond the limit of streams a dial is refused, and usbmuxd lives`() async throws {
        try await withScratchFolder { scratch in
            let rig = try await PhoneRig([Phones.one], in: scratch)
            let app = try EchoServer(in: scratch)
            let budget = UsbmuxConnectionLimit(limit: 3)
            let client = NativeUsbmuxClient(
                address: .unix(path: rig.socketPath),
                budget: budget,
                connectLimit: .milliseconds(500)
            )
            try await withDeviceSource(of: rig, client) { source in
                try await source.lists([Phones.one])
                let route = try Phones.route(Phones.one, app.port)
                do {
                    let one = try await source.dialer.dial(route)
                    let two = try await source.dialer.dial(route)
                    let three = try await source.dialer.dial(route)
                    let refusal = try await source.dialer.failure(of: route)
                    #expect(refusal?.reason == .limit)
                    #expect(refusal?.description.contains("3 streams") == true)
                    #expect(budget.used == 3)
                    // Held until here.
                    _ = (one.descriptor.number, two.descriptor.number, three.descriptor.number)
                }
                #expect(budget.used == 0)
                #expect(try await source.dialer.echoes(route))
            }
        }
    }

    @Test func `200 sources, started and stopped, leave nothing behind`() async throws {
        try await withScratchFolder { scratch in
            let rig = try await PhoneRig([Phones.one], in: scratch)
            let app = try EchoServer(in: scratch)
            let route = try Phones.route(Phones.one, app.port)
            func cycle() async throws {
                try await withDeviceSource(of: rig, DeviceClientKind.native.client(of: rig)) { source in
                    try await source.lists([Phones.one])
                    #expect(try await source.dialer.echoes(route))
                }
            }
            func count(_ what: String) throws -> Int {
                try FileManager.default.contentsOfDirectory(atPath: "/proc/self/\(what)").count
            }
            try await cycle()
            let before = (descriptors: try count("fd"), threads: try count("task"))

            for _ in 0..<200 { try await cycle() }

            // Other tests run at the same time; one thing lost in each cycle would still show.
            try await eventually("descriptors are as many as before") { try count("fd") < before.descriptors + 100 }
            try await eventually("threads are as many as before") { try count("task") < before.threads + 100 }
        }
    }
}

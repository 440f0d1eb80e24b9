import Model
import Samples
import SystemIO
import TestSupport
import Testing

@testable import Devices

/// The monitor with the real adb server and simulated phones.
@Suite(.needs(.adb), .scratchFolder, .timeLimit(.minutes(3))) struct ADBDeviceMonitorTests {
    private let scratch = ScratchFolder.current

    private func udid(_ phone: AndroidPhone) throws -> UDID { try #require(UDID(androidSerial: phone.serial)) }

    private func withMonitor(
        at address: ServerAddress,
        startsServer: Bool = false,
        _ body: (ADBDeviceMonitor) async throws -> Void
    ) async throws {
        let monitor = ADBDeviceMonitor(address: address, startsServer: startsServer, logger: .quiet)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await monitor.run() }
            defer { group.cancelAll() }
            try await body(monitor)
        }
    }

    /// Waits for a snapshot.
    private func snapshot(
        of monitor: ADBDeviceMonitor,
        _ promise: String,
        where holds: @escaping @Sendable ([Device]) -> Bool
    ) async throws -> [Device] {
        let found = try await withTimeout(.seconds(30), clock: ContinuousClock()) {
            for await snapshot in monitor.snapshots where snapshot.unanswered.isEmpty && holds(snapshot.devices) {
                return snapshot.devices
            }
            return []
        }
        return try #require(found, "\(promise): not within 30 s")
    }

    @Test func `phones are listed with their values, follow replugs, and are back after a restart of the server`()
        async throws
    {
        var pixel = AndroidPhone("R58M12ABCDE")
        pixel.name = "Anna’s phone"
        let galaxy = AndroidPhone("RZ8N90XYZ12", attachment: .tcp)
        let rig = try await ADBFixture([pixel, galaxy], in: scratch)
        try await withMonitor(at: .unix(path: rig.socketPath)) { monitor in
            let devices = try await snapshot(of: monitor, "both are listed") { $0.count == 2 }
            #expect(devices.map(\.udid) == [try udid(pixel), try udid(galaxy)])
            #expect(devices.first?.name?.text == "Anna’s phone" && devices.first?.productType?.text == "Pixel 8")
            #expect(devices.allSatisfy { $0.productVersion?.text == "15" && $0.isReady && $0.platform == .android })
            #expect(await monitor.status().detail.contains("2 phones"))

            try await rig.detach(pixel.serial)
            _ = try await snapshot(of: monitor, "one is left") { $0.map(\.udid.serial) == ["RZ8N90XYZ12"] }
            try await rig.attach(pixel)
            _ = try await snapshot(of: monitor, "it is back") { $0.count == 2 }

            try await rig.kill()
            _ = try await snapshot(of: monitor, "the server is gone") { $0.isEmpty }
            await #expect(throws: DialError.self) { try await monitor.transport(of: udid(pixel)) }
            try await eventually("the absence is noticed") { await monitor.status().state == .off }
            try await rig.start()
            _ = try await snapshot(of: monitor, "both are back") { $0.count == 2 && $0.allSatisfy(\.isReady) }
        }
    }

    @Test func `the unplug of a phone over TCP is noticed, which the server does not report`() async throws {
        let galaxy = AndroidPhone("RZ8N90XYZ12", attachment: .tcp)
        let rig = try await ADBFixture([galaxy], in: scratch)
        try await withMonitor(at: .unix(path: rig.socketPath)) { monitor in
            _ = try await snapshot(of: monitor, "it is listed") { $0.first?.isReady == true }
            try await rig.detach(galaxy.serial)
            _ = try await snapshot(of: monitor, "it is offline") { $0.first?.state == .offline }
            let failure = await #expect(throws: DialError.self) { try await monitor.transport(of: udid(galaxy)) }
            #expect(failure?.description.contains("does not answer: unlock the phone") == true)
            try await rig.attach(galaxy)
            _ = try await snapshot(of: monitor, "it is back") { $0.first?.isReady == true }
        }
    }

    @Test func `two emulators with one serial are two phones`() async throws {
        var (one, two) = (AndroidPhone("EMULATOR35"), AndroidPhone("EMULATOR35"))
        (one.virtualDevice, two.virtualDevice, two.copy) = ("Pixel_8", "Pixel_9", "-2")
        let rig = try await ADBFixture([one, two], in: scratch)
        try await withMonitor(at: .unix(path: rig.socketPath)) { monitor in
            let devices = try await snapshot(of: monitor, "both are listed") { $0.count == 2 }
            #expect(devices.map(\.udid.serial) == ["EMULATOR35-Pixel_8", "EMULATOR35-Pixel_9"])
        }
    }

    @Test func `of two phones with one serial only the first is used, until it leaves`() async throws {
        var (one, two) = (AndroidPhone("SAME", attachment: .tcp), AndroidPhone("SAME", attachment: .tcp))
        (one.name, two.name, two.copy) = ("First", "Second", "-2")
        one.bootID = "11111111-1111-4111-8111-111111111111"
        two.bootID = "22222222-2222-4222-8222-222222222222"
        let rig = try await ADBFixture([one, two], in: scratch)
        try await withMonitor(at: .unix(path: rig.socketPath)) { monitor in
            let devices = try await snapshot(of: monitor, "the first is listed") { $0.first?.name?.text == "First" }
            #expect(devices.map(\.udid.serial) == ["SAME"])
            try await eventually("the second is named") { await monitor.status().detail.contains("serial SAME") }
            try await rig.detach(one.key)
            _ = try await snapshot(of: monitor, "the second is used") { $0.contains { $0.name?.text == "Second" } }
            #expect(await monitor.status().isDegraded == false)
        }
    }

    @Test func `a phone that nobody allowed is listed, and a dial says what to tap`() async throws {
        var pixel = AndroidPhone("R58M12ABCDE")
        pixel.isAuthorized = false
        let rig = try await ADBFixture([pixel], in: scratch)
        try await withMonitor(at: .unix(path: rig.socketPath)) { monitor in
            let devices = try await snapshot(of: monitor, "it is listed") { $0.first?.state == .unauthorized }
            let listed = try #require(devices.first?.udid)
            let failure = await #expect(throws: DialError.self) { try await monitor.transport(of: listed) }
            #expect(failure?.reason == .deviceAbsent && failure?.description.contains("tap Allow") == true)
        }
    }

    @Test func `a frozen phone delays no other phone, and is asked again`() async throws {
        let (pixel, galaxy) = (AndroidPhone("R58M12ABCDE"), AndroidPhone("RZ8N90XYZ12"))
        let rig = try await ADBFixture([pixel], in: scratch)
        await rig.freeze(pixel.serial)
        try await withMonitor(at: .unix(path: rig.socketPath)) { monitor in
            try await rig.attach(galaxy)
            _ = try await snapshot(of: monitor, "the other one is listed") {
                $0.contains { $0.udid.serial == "RZ8N90XYZ12" && $0.isReady }
            }
            await rig.thaw(pixel.serial)
            _ = try await snapshot(of: monitor, "both are listed") { $0.count == 2 && $0.allSatisfy(\.isReady) }
        }
    }

    @Test func `a service of a phone is opened, and its output read`() async throws {
        let pixel = AndroidPhone("R58M12ABCDE")
        let rig = try await ADBFixture([pixel], in: scratch)
        try await withMonitor(at: .unix(path: rig.socketPath)) { monitor in
            var lists = await monitor.reachablePhones().makeAsyncIterator()
            var phones = await lists.next() ?? []
            while phones.isEmpty { phones = await lists.next() ?? [] }
            let phone = try #require(phones.first)
            #expect(phone.udid == (try udid(pixel)) && phone.release?.text == "15")
            let connection = try await monitor.open(.shell("getprop ro.serialno"), of: phone.udid)
            let output = try await connection.receive(atMost: 100)
            #expect(String(decoding: output, as: UTF8.self) == "R58M12ABCDE\n")
        }
    }

    @Test func `an absent server is not started, and used when it starts`() async throws {
        let path = scratch.file("adb")
        try await withMonitor(at: .unix(path: path)) { monitor in
            try await eventually("its absence is noticed") { await monitor.status().state == .off }
            let rig = try await ADBFixture([AndroidPhone("R58M12ABCDE")], in: scratch, socketPath: path)
            _ = try await snapshot(of: monitor, "the phone is listed") { $0.count == 1 }
            try await rig.kill()
        }
    }
}

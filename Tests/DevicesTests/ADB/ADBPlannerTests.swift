import Glibc
import Model
import Samples
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import Devices

/// Streams through the real adb server to simulated phones.
@Suite(.needs(.adb), .scratchFolder, .timeLimit(.minutes(3))) struct ADBPlannerTests {
    private let scratch = ScratchFolder.current
    private let pixel = AndroidPhone("R58M12ABCDE")
    private let galaxy = AndroidPhone("RZ8N90XYZ12")

    private func route(_ phone: AndroidPhone, _ socket: DeviceSocket) throws -> Route {
        .usb(USBRoute(udid: try #require(RigTransports.udids[phone.serial]), socket: socket))
    }

    private func failure(of planner: ADBPlanner, _ route: Route) async throws -> DialError? {
        do {
            _ = try await planner.dial(route)
            return nil
        } catch let failure as DialError { return failure }
    }

    private func echoes(_ planner: ADBPlanner, _ route: Route) async throws -> Bool {
        let connection = try await planner.dial(route)
        let bytes = Pattern.bytes(0..<60_000)
        try await connection.send(bytes)
        return try await connection.receive(bytes.count) == bytes
    }

    @Test func `a stream reaches a port or an abstract socket of the phone`() async throws {
        let app = try EchoServer(in: scratch)
        var phone = pixel
        phone.abstractSockets = ["chrome_devtools_remote": app.port]
        let rig = try await ADBFixture([phone], in: scratch)
        let planner = ADBPlanner(RigTransports(rig))
        let name = try #require(AbstractSocketName("chrome_devtools_remote"))

        #expect(try await echoes(planner, route(phone, .port(app.port))))
        #expect(try await echoes(planner, route(phone, .abstract(name))))
    }

    @Test func `the phone's own lists say whether something listens, without a connection`() async throws {
        let app = try EchoServer(in: scratch)
        let udid = try #require(UDID(androidSerial: pixel.serial))
        var phone = pixel
        phone.abstractSockets = ["chrome_devtools_remote": app.port]
        let rig = try await ADBFixture([phone], in: scratch)
        let monitor = ADBDeviceMonitor(address: .unix(path: rig.socketPath), logger: .quiet)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await monitor.run() }
            defer { group.cancelAll() }
            try await eventually("the phone is ready") { await monitor.isReachable(udid) }
            let names = try ["chrome_devtools_remote", "nobody"].map { try #require(AbstractSocketName($0)) }
            let closed = try FreePorts.take()[0]

            #expect(await monitor.isListening(.port(app.port), of: udid) == true)
            #expect(await monitor.isListening(.port(closed), of: udid) == false)
            #expect(await monitor.isListening(.abstract(names[0]), of: udid) == true)
            #expect(await monitor.isListening(.abstract(names[1]), of: udid) == false)
            try await rig.kill()
            #expect(await monitor.isListening(.port(closed), of: udid) == nil)
        }
    }

    @Test func `a closed port, an unknown name and an absent phone are said`() async throws {
        let rig = try await ADBFixture([pixel], in: scratch)
        let source = RigTransports(rig)
        let planner = ADBPlanner(source)
        let port = try FreePorts.take()[0]
        let name = try #require(AbstractSocketName("nobody"))

        let closed = try await failure(of: planner, route(pixel, .port(port)))
        #expect(closed?.reason == .refused)
        #expect(closed?.description.contains("nothing listens on port \(port) of Pixel 8") == true)
        let unknown = try await failure(of: planner, route(pixel, .abstract(name)))
        #expect(unknown?.description.contains("nothing listens on the abstract socket nobody of Pixel 8") == true)
        #expect(try await failure(of: planner, route(galaxy, .port(port)))?.reason == .deviceAbsent)

        try await rig.kill()
        #expect(try await failure(of: planner, route(pixel, .port(port)))?.reason == .deviceAbsent)
    }

    @Test func `a stream is opened again if another phone may have the transport, and is never used`() async throws {
        let app = try EchoServer(in: scratch)
        let rig = try await ADBFixture([pixel], in: scratch)
        let source = RigTransports(rig)
        let planner = ADBPlanner(source)

        source.failedChecks.withLock { $0 = 2 }
        #expect(try await echoes(planner, route(pixel, .port(app.port))))
        source.failedChecks.withLock { $0 = .max }
        let begin = ContinuousClock.now
        #expect(try await failure(of: planner, route(pixel, .port(app.port)))?.reason == .deviceAbsent)
        // Between the attempts a list is read, also on a busy machine.
        #expect(begin.duration(to: .now) > .milliseconds(200))
    }

    @Test func `a frozen phone times out and delays no other phone`() async throws {
        let app = try EchoServer(in: scratch)
        let rig = try await ADBFixture([pixel, galaxy], in: scratch)
        let planner = ADBPlanner(RigTransports(rig), timeout: .milliseconds(500))
        await rig.freeze(pixel.serial)
        let frozen = try route(pixel, .port(app.port))

        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<8 {
                group.addTask {
                    let failure = try await failure(of: planner, frozen)
                    #expect(failure?.reason == .timedOut)
                    #expect(failure?.description.contains("Pixel 8 did not answer on port \(app.port)") == true)
                }
            }
            for _ in 0..<20 { #expect(try await echoes(planner, route(galaxy, .port(app.port)))) }
            try await group.waitForAll()
        }
    }

    @Test func `streams above the limit are refused, and the server stays responsive`() async throws {
        let app = try EchoServer(in: scratch)
        let rig = try await ADBFixture([pixel], in: scratch, descriptorLimit: 128)
        let planner = ADBPlanner(RigTransports(rig), connectionLimit: FairLimiter(limit: 64), timeout: .seconds(1))
        let target = try route(pixel, .port(app.port))
        var open: [(stream: SocketStream, permit: (any Sendable)?)] = []
        var refusal: DialError?
        while refusal == nil, open.count < 100 {
            do {
                let (number, _, permit) = try await planner.dial(target).release()
                open.append((SocketStream(owning: Descriptor(owning: number)), permit))
            } catch let failure as DialError { refusal = failure }
        }

        #expect(open.count == 64)
        #expect(refusal?.reason == .limit)
        #expect(refusal?.description.contains("64 streams through the adb server are open") == true)
        #expect(try await rig.request("host:version").isEmpty == false)
    }
}

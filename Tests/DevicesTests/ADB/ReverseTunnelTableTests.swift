import Model
import Samples
import ServiceLifecycle
import SystemIO
import TestSupport
import Testing

@testable import Devices

/// Ports of simulated phones behind the real adb server that lead to this machine.
@Suite(.needs(.adb), .scratchFolder, .timeLimit(.minutes(3))) struct ReverseTunnelTableTests {
    private let scratch = ScratchFolder.current
    private let pixel = AndroidPhone("R58M12ABCDE")

    private func udid(_ phone: AndroidPhone) throws -> UDID { try #require(UDID(androidSerial: phone.serial)) }

    private func table(of monitor: ADBDeviceMonitor?, in folder: String? = nil) async throws -> ReverseTunnelTable {
        let file = StateFile<[ReverseTunnelTable.Record]>("reverse", in: folder ?? scratch.path, logger: .quiet)
        return try await ReverseTunnelTable(of: monitor, file: file, logger: .quiet)
    }

    private func withMonitor(_ rig: ADBFixture, _ body: (ADBDeviceMonitor) async throws -> Void) async throws {
        let monitor = ADBDeviceMonitor(address: .unix(path: rig.socketPath), logger: .quiet)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await monitor.run() }
            defer { group.cancelAll() }
            try await body(monitor)
        }
    }

    /// Runs a table with the tunnels that are saved, until graceful shutdown at the end of the body.
    private func withTable(
        of monitor: ADBDeviceMonitor,
        _ body: (ReverseTunnelTable) async throws -> Void
    ) async throws {
        let table = try await table(of: monitor)
        let group = ServiceGroup(services: [table], logger: .quiet)
        async let ended: Void = group.run()
        do { try await body(table) } catch {
            await group.triggerGracefulShutdown()
            throw error
        }
        await group.triggerGracefulShutdown()
        try await ended
    }

    private func waitForState(_ name: String, of table: ReverseTunnelTable) async throws {
        try await eventually("the tunnel is \(name)") { await table.list().first?.state.name == name }
    }

    @Test(arguments: [AndroidPhone.Attachment.emulator, .tcp])
    func `a port leads to this machine, also after replugs and restarts of adb and of the broker`(
        attachment: AndroidPhone.Attachment
    ) async throws {
        let phone = AndroidPhone("R58M12ABCDE", attachment: attachment)
        let echo = try EchoServer(in: scratch)
        let port = try FreePorts.take()[0]
        let rig = try await ADBFixture([phone], in: scratch)
        try await withMonitor(rig) { monitor in
            try await withTable(of: monitor) { table in
                let opened = try await table.open(port, of: udid(phone), to: echo.port)
                #expect(opened.phonePort == port && opened.localPort == echo.port)
                try await waitForState("active", of: table)
                #expect(await LoopbackClient.echoes(from: port, within: .seconds(5)))
                for round in 0..<4 {
                    if round == 3 {
                        try await rig.restart()
                    } else {
                        try await rig.detach(phone.serial)
                        try await waitForState("waiting", of: table)
                        #expect(await !LoopbackClient.echoes(from: port, within: .seconds(1)))
                        try await rig.attach(phone)
                    }
                    try await eventually("the port is open again") {
                        await LoopbackClient.echoes(from: port, within: .seconds(5))
                    }
                }
            }
            #expect(await !LoopbackClient.echoes(from: port, within: .seconds(1)), "a broker that ended leaves it open")
            try await withTable(of: monitor) { table in
                try await waitForState("active", of: table)
                #expect(await LoopbackClient.echoes(100_000, from: port, within: .seconds(5)))
            }
        }
    }

    @Test func `a port says that nothing listens on this machine, as long as that is so`() async throws {
        let (port, local) = (try FreePorts.take()[0], try FreePorts.take()[0])
        let rig = try await ADBFixture([pixel], in: scratch)
        try await withMonitor(rig) { monitor in
            try await withTable(of: monitor) { table in
                let opened = try await table.open(port, of: udid(pixel), to: local)
                try await waitForState("waiting", of: table)
                try await eventually("it says why") {
                    await table.list().first?.state.reason?.contains("nothing listens on port \(local)") == true
                }
                #expect(opened.state.name == "waiting")
                let echo = try EchoServer(port: local, in: scratch)
                #expect(await table.list().first?.state == .active)
                echo.stop()
                #expect(await table.list().first?.state.name == "waiting")
            }
        }
    }

    @Test func `a removed port accepts no connection, also when it was removed while the phone was away`() async throws
    {
        let echo = try EchoServer(in: scratch)
        let ports = try FreePorts.take(2)
        let rig = try await ADBFixture([pixel], in: scratch)
        try await withMonitor(rig) { monitor in
            try await withTable(of: monitor) { table in
                for port in ports { _ = try await table.open(port, of: udid(pixel), to: echo.port) }
                try await eventually("both are open") {
                    await table.list().filter { $0.state == .active }.count == 2
                }
                try await table.remove(ports[0], of: udid(pixel))
                #expect(await !LoopbackClient.echoes(from: ports[0], within: .seconds(1)))
                #expect(await table.list().map(\.phonePort) == [ports[1]])
                await #expect(throws: Problem.self) { try await table.remove(ports[0], of: udid(pixel)) }

                try await rig.detach(pixel.serial)
                try await waitForState("waiting", of: table)
                try await table.remove(ports[1], of: udid(pixel))
                try await rig.attach(pixel)
                try await eventually("the phone is back") { (try? await monitor.transport(of: udid(pixel))) != nil }
                #expect(await table.list().isEmpty)
                #expect(try await monitor.reversePorts(of: udid(pixel)).localPorts.isEmpty)
            }
            #expect(try await table(of: nil).list().isEmpty)
        }
    }

    @Test func `only the named phone gets the port`() async throws {
        let galaxy = AndroidPhone("RZ8N90XYZ12", attachment: .tcp)
        let echo = try EchoServer(in: scratch)
        let port = try FreePorts.take()[0]
        let rig = try await ADBFixture([galaxy], in: scratch)
        try await withMonitor(rig) { monitor in
            try await withTable(of: monitor) { table in
                _ = try await table.open(port, of: udid(galaxy), to: echo.port)
                try await waitForState("active", of: table)
                // The other phone gets the same transport.
                try await rig.replace(galaxy.serial, by: AndroidPhone("R58M12ABCDE", attachment: .tcp))
                try await eventually("the other phone is there") {
                    (try? await monitor.transport(of: udid(pixel))) != nil
                }
                #expect(await table.list().map(\.state.name) == ["waiting"])
                #expect(try await monitor.reversePorts(of: udid(pixel)).localPorts.isEmpty)
                #expect(await !LoopbackClient.echoes(from: port, within: .seconds(1)))
            }
        }
    }

    @Test func `a port that another program closed or changed is open again when the tunnels are listed`() async throws
    {
        let (echo, other) = (try EchoServer(in: scratch), try EchoServer(in: scratch))
        let port = try FreePorts.take()[0]
        let rig = try await ADBFixture([pixel], in: scratch)
        try await withMonitor(rig) { monitor in
            try await withTable(of: monitor) { table in
                _ = try await table.open(port, of: udid(pixel), to: echo.port)
                try await waitForState("active", of: table)
                for change in 0..<2 {
                    if change == 0 {
                        try await monitor.closeReverse(port, of: udid(pixel))
                    } else {
                        try await monitor.openReverse(port, to: other.port, of: udid(pixel))
                    }
                    #expect(await table.list().first?.state == .active)
                    #expect(try await monitor.reversePorts(of: udid(pixel)).localPorts == [port: echo.port])
                    #expect(await LoopbackClient.echoes(from: port, within: .seconds(5)))
                }
                let changed = try await table.open(port, of: udid(pixel), to: other.port)
                #expect(changed.state == .active && changed.localPort == other.port)
                #expect(try await monitor.reversePorts(of: udid(pixel)).localPorts == [port: other.port])
            }
        }
    }

    @Test func `a port that the phone refuses says why, and opens when it is free`() async throws {
        let echo = try EchoServer(in: scratch)
        let taken = try EchoServer(in: scratch)
        let rig = try await ADBFixture([pixel], in: scratch)
        try await withMonitor(rig) { monitor in
            try await withTable(of: monitor) { table in
                try await eventually("the phone is there") { (try? await monitor.transport(of: udid(pixel))) != nil }
                let refused = try await table.open(taken.port, of: udid(pixel), to: echo.port)
                #expect(refused.state.name == "failed", "\(refused.state)")
                #expect(refused.state.reason?.contains("Address already in use") == true, "\(refused.state)")
                taken.stop()
                try await waitForState("active", of: table)
            }
        }
    }

    @Test func `a frozen phone delays the list by at most 2 s, and no other phone`() async throws {
        let galaxy = AndroidPhone("RZ8N90XYZ12", attachment: .tcp)
        let echo = try EchoServer(in: scratch)
        let ports = try FreePorts.take(2)
        let rig = try await ADBFixture([pixel, galaxy], in: scratch)
        try await withMonitor(rig) { monitor in
            try await withTable(of: monitor) { table in
                _ = try await table.open(ports[0], of: udid(pixel), to: echo.port)
                try await waitForState("active", of: table)
                await rig.freeze(pixel.serial)
                let begin = ContinuousClock.now
                _ = await table.list()
                #expect(begin.duration(to: .now) < .seconds(4))
                try await eventually("the other phone is there") {
                    (try? await monitor.transport(of: udid(galaxy))) != nil
                }
                #expect(try await table.open(ports[1], of: udid(galaxy), to: echo.port).state == .active)
                await rig.thaw(pixel.serial)
            }
        }
    }

    @Test func `an iPhone, a port 0, and too many tunnels are refused`() async throws {
        let table = try await table(of: nil)
        let phone = try udid(pixel)
        let failure = await #expect(throws: Problem.self) {
            try await table.open(8081, of: UDID.sample, to: 8081)
        }
        #expect(failure?.detail.contains("usbmuxd connects to ports of an iPhone only") == true)
        await #expect(throws: Problem.self) { try await table.open(0, of: phone, to: 8081) }
        await #expect(throws: Problem.self) { try await table.open(8081, of: phone, to: 0) }
        for port in 1...UInt16(ReverseTunnelTable.limit) { _ = try await table.open(port, of: phone, to: port) }
        await #expect(throws: Problem.self) { try await table.open(999, of: phone, to: 1) }
        let changed = try await table.open(1, of: phone, to: 2)
        #expect(changed.localPort == 2 && changed.state.reason == "adb is turned off (devices.adb)")
        #expect(await table.list().count == ReverseTunnelTable.limit)
    }

    @Test func `a tunnel that cannot be saved does not exist`() async throws {
        let table = try await table(of: nil, in: scratch.file("missing"))
        await #expect(throws: Problem.self) { try await table.open(8081, of: udid(pixel), to: 8081) }
        #expect(await table.list().isEmpty)
    }

    @Test func `the list of a phone has ports of both sides only`() {
        let text = """
            (reverse) tcp:8081 tcp:8082
            UsbFfs tcp:9000 localabstract:x
            host-12 localabstract:y tcp:1
            two words tcp:65535 tcp:1
            tcp:70000 tcp:1
            tcp:3
            """
        #expect(ADBReversePorts(text: Array(text.utf8)).localPorts == [8081: 8082, 65535: 1])
        #expect(ADBReversePorts(text: []).localPorts.isEmpty)
    }
}

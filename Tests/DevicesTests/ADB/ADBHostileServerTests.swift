import FoundationEssentials
import Model
import Samples
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import Devices

/// Servers and phones that send what no real one sends.
@Suite(.scratchFolder, .timeLimit(.minutes(2))) struct ADBHostileServerTests {
    private let scratch = ScratchFolder.current

    private func withMonitor(of server: FakeADBServer, _ body: (ADBDeviceMonitor) async throws -> Void) async throws {
        let monitor = ADBDeviceMonitor(address: server.address, logger: .quiet)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await monitor.run() }
            defer { group.cancelAll() }
            try await body(monitor)
        }
    }

    private func devices(_ monitor: ADBDeviceMonitor, where holds: @escaping @Sendable ([Device]) -> Bool) async throws
        -> [Device]
    {
        let found = try await withTimeout(.seconds(10), clock: ContinuousClock()) {
            for await snapshot in monitor.snapshots where holds(snapshot.devices) { return snapshot.devices }
            return []
        }
        return try #require(found, "no such list within 10 s")
    }

    @Test(arguments: ["garbage", "OKAYzzzz", "OKAY00", "FAIL0004nope", "FAILffff", ""])
    func `a server that does not speak adb is named, and asked again`(answer: String) async throws {
        let isHostile = Mutex(true)
        let server = try FakeADBServer(in: scratch) { connection in
            guard isHostile.withLock({ $0 }) else {
                connection.send("OKAY")
                connection.sendText("")
                return connection.waitForEnd()
            }
            connection.send(answer)
        }
        try await withMonitor(of: server) { monitor in
            try await eventually("the problem is named") {
                let status = await monitor.status()
                return status.state == .starting && status.isDegraded && status.hint != nil
            }
            isHostile.withLock { $0 = false }
            try await eventually("the server is used") { await monitor.status().state == .ok }
        }
    }

    @Test func `names with escapes, damaged lines and repeated transports are listed without harm`() async throws {
        let list = """
            \u{1B}]0;x\u{07} unauthorized usb:1-1 transport_id:1
            A device transport_id:18446744073709551616
            B unauthorized usb:1-2 transport_id:1
            C;rm unauthorized usb:1-3 model:\u{1B}[31m transport_id:3
            \(String(repeating: "z", count: 5_000)) unauthorized usb:1-4 transport_id:4
            transport_id:5

            """
        let server = try FakeADBServer(in: scratch) { connection in
            connection.send("OKAY")
            connection.sendText(list)
            connection.waitForEnd()
        }
        try await withMonitor(of: server) { monitor in
            let devices = try await devices(monitor) { $0.count == 3 }
            let texts = devices.flatMap { [$0.udid.text, $0.productType?.text ?? "", $0.name?.text ?? ""] }
            #expect(
                texts.allSatisfy { text in text.unicodeScalars.allSatisfy { $0.value >= 0x20 && $0.value != 0x7F } }
            )
            #expect(devices.allSatisfy { $0.udid.text.utf8.count <= 100 && !$0.isReady })
        }
    }

    @Test func `endless lists of phones that answer endlessly cost bounded connections, and no CPU without a pause`()
        async throws
    {
        let lists = Mutex(0)
        let server = try FakeADBServer(in: scratch) { connection in
            connection.send("OKAY")
            switch connection.first {
            case "host:track-devices-l":
                var round = 0
                repeat {
                    round += 1
                    lists.withLock { $0 += 1 }
                } while connection.sendText(
                    (1...400).map { "10.0.0.\($0):\(round) device transport_id:\($0)\n" }.joined()
                )
            default:
                _ = connection.request()
                connection.send("OKAY")
                while connection.send(String(repeating: "x", count: 4_096)) {}
            }
        }
        try await withMonitor(of: server) { monitor in
            try await eventually("lists are read") { lists.withLock { $0 } > 60 }
            let before = lists.withLock { $0 }
            try await Task.sleep(for: .seconds(1))
            #expect(lists.withLock { $0 } - before < 100)
            // One connection for each of 256 phones, and that of the lists.
            #expect(server.openConnections <= 260)
            let start = ContinuousClock.now
            #expect(await monitor.status().state == .ok)
            #expect(ContinuousClock.now - start < .seconds(20))
        }
    }

    @Test func `endless records of track-app and packets of 2 GB cost bounded reads`() async throws {
        let records = Mutex(0)
        let server = try FakeADBServer(in: scratch) { connection in
            connection.send("OKAY")
            guard connection.first == "track-app" else {
                // The header of a packet of the shell: the output, and a length of 2 GB.
                connection.send("\u{01}\u{7F}\u{7F}\u{7F}\u{7F}")
                while connection.send(String(repeating: "x", count: 4_096)) {}
                return
            }
            // Another process in each record: field 1 has an entry, whose field 1 is the number of the process.
            var number: UInt8 = 2
            repeat {
                number = number % 120 + 1
                records.withLock { $0 += 1 }
            } while connection.sendText("\u{0A}\u{02}\u{08}\(Character(Unicode.Scalar(number + 1)))")
        }
        let follower = PhoneAppFollower(
            open: { request in
                let connection = try await ADBConnection(to: server.address)
                try await connection.request(request)
                return connection
            },
            logger: .quiet,
            report: { _ in }
        )
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { await follower.run() }
            defer { group.cancelAll() }
            // The sockets hold thousands of records more than were read.
            try await eventually("records are sent") { records.withLock { $0 } > 60 }
            try await Task.sleep(for: .seconds(2))
            let before = records.withLock { $0 }
            try await Task.sleep(for: .seconds(2))
            // Without a limit they are tens of thousands.
            #expect(records.withLock { $0 } - before < 400)
            #expect(server.openConnections <= 4)
        }
    }

    @Test func `two servers of different versions that replace each other are named`() async throws {
        let runs = Mutex(0)
        let server = try FakeADBServer(version: { runs.withLock { $0 } % 2 == 0 ? "0027" : "0029" }, in: scratch) {
            connection in
            connection.send("OKAY")
            connection.sendText("")
            if runs.withLock({ runs in
                runs += 1
                return runs
            }) > 8 {
                connection.waitForEnd()
            }
        }
        try await withMonitor(of: server) { monitor in
            try await eventually("the versions are named") {
                await monitor.status().detail.contains("replace each other")
            }
        }
    }
}

import FoundationEssentials
import Glibc
import Model
import Synchronization
import SystemIO
import TestSupport
import Testing

/// Tunnels to Android phones while these are replugged, the adb server is killed, and phones take each other's transport.
///
/// Runs a few faults; with `PATCHBAY_SOAK=1` (`make soak`) 100 replugs, 20 restarts of the server and 20 changes of
/// transports.
@Suite(.serialized, .needs(.adb, .python), .timeLimit(.minutes(20)), .scratchFolder) struct AndroidSoakTests {
    private let scratch = ScratchFolder.current
    private static let isSoak = ProcessInfo.processInfo.environment["PATCHBAY_SOAK"] == "1"
    private static let (replugs, restarts, changes) = isSoak ? (100, 20, 20) : (4, 2, 2)
    /// Phones like emulators, whose unplug the server reports at once, and two over TCP that share one transport.
    private static let phones = [
        AndroidPhone("R58M12ABCDE", address: "127.0.7.1"), AndroidPhone("RZ8N90XYZ12", address: "127.0.7.2"),
    ]
    private static let movers = [
        AndroidPhone("MOVER1", attachment: .tcp, address: "127.0.7.3"),
        AndroidPhone("MOVER2", attachment: .tcp, address: "127.0.7.4"),
    ]

    /// A tunnel to a phone, whose app sends the serial of the phone.
    private final class Path: Sendable {
        let serial: String
        let port: UInt16
        private let counts = Mutex((right: 0, wrong: 0, refused: 0))

        init(_ serial: String, port: UInt16) { (self.serial, self.port) = (serial, port) }

        var right: Int { counts.withLock { $0.right } }
        var wrong: Int { counts.withLock { $0.wrong } }

        func connect() async {
            let answer = try? await SocketStream.connect(to: .ipv4(INADDR_LOOPBACK, port: port)).receiveToEnd()
            counts.withLock { counts in
                switch answer.map({ String(decoding: $0, as: UTF8.self) }) {
                case nil, "": counts.refused += 1
                case serial: counts.right += 1
                default: counts.wrong += 1
                }
            }
        }

        /// Returns the time until the phone answers.
        func returnTime() async throws -> Duration {
            let (start, before) = (ContinuousClock.now, right)
            try await eventually("\(serial) is reached again") { right > before }
            return ContinuousClock.now - start
        }
    }

    @Test func `tunnels reach their own phone only, are back within 2 s, and leave no descriptor behind`() async throws
    {
        let port = try FreePorts.take()[0]
        for phone in Self.phones + Self.movers {
            let name = Array(phone.serial.utf8)
            _ = try LoopbackServer(address: phone.address, port: port, in: scratch) {
                _ = BlockingStream.send(name[...], to: $0)
            }
        }
        let rig = try await ADBFixture(Self.phones + Self.movers.prefix(1), in: scratch)
        let broker = try await RunningBroker(in: scratch, android: rig)
        var paths: [Path] = []
        for phone in Self.phones + Self.movers {
            let local = try await broker.forward("tcp:0:\(port)", "--device", "android-\(phone.serial)")
            paths.append(Path(phone.serial, port: local))
        }
        let times = try await campaign(rig, broker, paths)
        for (name, times) in times.sorted(by: { $0.key < $1.key }) {
            let sorted = times.sorted()
            print(
                "android \(name): \(times.count), back p50 \(sorted[times.count / 2]), max \(sorted[times.count - 1])"
            )
            #expect(sorted.last.map { $0 < .seconds(2) } == true, "\(name)")
        }
        print("android connects: \(paths.map(\.right)) right, \(paths.map(\.wrong)) wrong")
        #expect(paths.allSatisfy { $0.wrong == 0 })
    }

    private func campaign(
        _ rig: ADBFixture,
        _ broker: RunningBroker,
        _ paths: [Path]
    ) async throws -> [String: [Duration]] {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for path in paths {
                group.addTask {
                    while !Task.isCancelled {
                        await path.connect()
                        try await Task.sleep(for: .milliseconds(5))
                    }
                }
            }
            defer { group.cancelAll() }
            for path in paths.prefix(3) { _ = try await path.returnTime() }
            let before = Footprint.now(of: broker.daemon.processID)
            var times: [String: [Duration]] = [:]
            for round in 0..<Self.replugs {
                let phone = Self.phones[round % 2]
                try await rig.detach(phone.serial)
                try await rig.attach(phone)
                times["replug", default: []].append(try await paths[round % 2].returnTime())
            }
            for _ in 0..<Self.restarts {
                try await rig.restart()
                for path in paths.prefix(2) { times["restart", default: []].append(try await path.returnTime()) }
            }
            for round in 0..<Self.changes {
                let (old, new) = round % 2 == 0 ? (0, 1) : (1, 0)
                try await rig.replace(Self.movers[old].serial, by: Self.movers[new])
                times["transport", default: []].append(try await paths[2 + new].returnTime())
            }
            try await expectSameFootprint(of: broker, as: before)
            return times
        }
    }

    private func expectSameFootprint(of broker: RunningBroker, as before: Footprint) async throws {
        let after = try await eventually("the descriptors are as before") {
            let now = Footprint.now(of: broker.daemon.processID)
            return now.others <= before.others + 8 ? now : nil
        }
        print(
            "android descriptors \(before.others) -> \(after.others), threads \(before.threads) -> \(after.threads), "
                + "KiB \(before.kilobytes) -> \(after.kilobytes)"
        )
        #expect(after.kilobytes < before.kilobytes + 32 << 10)
    }

    @Test func `a phone that leaves in mid-stream resets the client, and the tunnel waits for it`() async throws {
        let phone = Self.phones[0]
        let forever = try LoopbackServer(address: phone.address, in: scratch) { connection in
            while BlockingStream.send(Pattern.bytes(0..<65_536)[...], to: connection) { usleep(1_000) }
        }
        let rig = try await ADBFixture([phone], in: scratch)
        let broker = try await RunningBroker(in: scratch, android: rig)
        let local = try await broker.forward("tcp:0:\(forever.port)", "--device", "android-\(phone.serial)")
        for _ in 0..<(Self.isSoak ? 20 : 2) {
            let client = try await eventually("the tunnel carries bytes") { () -> SocketStream? in
                let client = try await SocketStream.connect(to: .ipv4(INADDR_LOOPBACK, port: local))
                return ((try? await client.receive(65_536))?.count ?? 0) > 0 ? client : nil
            }
            try await rig.detach(phone.serial)
            await #expect(throws: SocketStream.Failure(code: ECONNRESET)) { _ = try await client.receiveToEnd() }
            try await eventually("the tunnel waits") { try await broker.ask("tunnels").joined().contains("waiting") }
            try await rig.attach(phone)
        }
    }

    @Test func `a bench without adb starts no server, and uses no CPU`() async throws {
        let broker = try await RunningBroker(in: scratch)
        let status = try await broker.ask("status", "--json").joined(separator: "\n")
        let source = try JSONCoding.decoder().decode(BrokerStatus.self, from: Data(status.utf8)).sources.first {
            $0.name == "adb"
        }
        #expect(source?.state == .off && source?.isDegraded == false)
        let before = Footprint.now(of: broker.daemon.processID).ticks
        try await Task.sleep(for: Self.isSoak ? .seconds(60) : .seconds(2))
        let used = Footprint.now(of: broker.daemon.processID).ticks - before
        print("android absent: \(used) ticks of 10 ms")
        #expect(used <= (Self.isSoak ? 30 : 5))
        #expect(!FileManager.default.fileExists(atPath: scratch.file("no-adb")))
    }
}

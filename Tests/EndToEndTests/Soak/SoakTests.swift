import FoundationEssentials
import Model
import TestSupport
import Testing

/// Phones and usbmuxd fail every few seconds, and no client gets a wrong byte or a false end of stream.
///
/// Takes 30 s; with `PATCHBAY_SOAK=1` (`make soak`) 30 min, or `PATCHBAY_SOAK_MINUTES`.
@Suite(.serialized, .needs(.usbmuxd), .timeLimit(.minutes(40)), .scratchFolder) struct SoakTests {
    private let scratch = ScratchFolder.current

    private static let (warming, length): (Duration, Duration) = {
        let environment = ProcessInfo.processInfo.environment
        guard environment["PATCHBAY_SOAK"] == "1" else { return (.seconds(5), .seconds(18)) }
        let minutes = environment["PATCHBAY_SOAK_MINUTES"].flatMap { Int($0) } ?? 30
        return (.seconds(60), .seconds(max(1, minutes - 1) * 60))
    }()
    private static let seed: UInt64 = 3
    private static let clients = 16
    /// A connect may take 10 s, and a stopped usbmuxd adds up to 3 s.
    private static let longestWait = Duration.seconds(14)

    @Test func `every stream is complete or ends with an error while phones and usbmuxd come and go`() async throws {
        let rig = try await UsbmuxdFixture(in: scratch)
        let phones = [Phones.one, Phones.two].map { (udid: $0, options: Phones.options(of: $0)) }
        for phone in phones { try await rig.attach(phone.udid, phone.options) }
        let broker = try await RunningBroker(in: scratch, phones: rig)
        let results = SoakResults()
        let paths = try await Self.paths(through: broker, results, in: scratch)
        var faults = FaultSchedule(on: rig, phones: phones, seed: Self.seed)

        try await Self.run(paths, results, &faults, for: Self.warming)
        let before = try await Self.footprintAtRest(of: broker, in: scratch)
        try await Self.run(paths, results, &faults, for: Self.length)
        let after = try await Self.footprintAtRest(of: broker, with: before.others, in: scratch)
        let (counts, failures) = (results.counts, try await Self.failures(of: broker))

        print(
            "soak: \(faults.events) events; \(counts.whole) whole, \(counts.cut) cut, \(counts.refused) refused, \(counts.left) left, "
                + "\(counts.bytes >> 20) MiB, longest wait \(counts.longestWait.formatted); counted \(failures); "
                + "descriptors \(before.others) -> \(after.others), of pipes \(before.pipes) -> \(after.pipes), "
                + "threads \(before.threads) -> \(after.threads), KiB \(before.kilobytes) -> \(after.kilobytes)"
        )
        #expect(counts.broken.isEmpty, "\(counts.broken.prefix(20)), \(counts.broken.count) in all")
        #expect(counts.whole > counts.cut && counts.cut > 0)
        #expect(failures["linkLost"] ?? 0 > 0)
        #expect(counts.longestWait < Self.longestWait)
        // The relay keeps up to 32 pipes for reuse.
        #expect(after.others <= before.others)
        #expect(after.pipes <= 64 + 2 * 3)
        // Swift's thread pool grows to at most one thread per core.
        #expect(after.threads <= before.threads + ProcessInfo.processInfo.activeProcessorCount)
        #expect(after.kilobytes < before.kilobytes + 24 << 10)
    }

    /// Opens tunnels to apps with transfers of all sizes, on both phones and on the network.
    private static func paths(
        through broker: RunningBroker,
        _ results: SoakResults,
        in scratch: ScratchFolder
    ) async throws -> [SoakPath] {
        var paths: [SoakPath] = []
        for (up, down) in [(64, 64), (100, 400_000), (400_000, 100), (1 << 20, 1 << 20), (2_000, 3 << 20)] {
            for udid in [Phones.one, Phones.two] {
                let app = try SoakApp(on: Phones.address(of: udid), up: up, down: down, results, in: scratch)
                let port = try await broker.forward("tcp:0:\(app.port)", "--device", udid)
                let name = udid == Phones.one ? "phone 1" : "phone 2"
                paths.append(SoakPath(port: port, app: app, name: name, isSteady: false))
            }
        }
        let app = try SoakApp(on: "127.0.0.1", up: 200_000, down: 300_000, results, in: scratch)
        _ = try await broker.ask("add", "soak", "127.0.0.1:\(app.port)", "--kind", "tcp")
        let port = try await broker.forward("tcp:0", "--endpoint", "soak")
        return paths + [SoakPath(port: port, app: app, name: "network", isSteady: true)]
    }

    /// Runs clients continuously during the faults and returns when the last one is done.
    private static func run(
        _ paths: [SoakPath],
        _ results: SoakResults,
        _ faults: inout FaultSchedule,
        for length: Duration
    ) async throws {
        let end = ContinuousClock.now + length
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<clients {
                group.addTask {
                    var random = SeededGenerator(seed: seed &+ UInt64(number) &* 1_000_003)
                    while ContinuousClock.now < end, let path = paths.randomElement(using: &random) {
                        let isThere = await talk(to: path, Int.random(in: 0..<8, using: &random), results)
                        let pause = Int.random(in: isThere ? 0...20 : 50...200, using: &random)
                        try await Task.sleep(for: .milliseconds(pause))
                    }
                }
            }
            try await faults.run(for: length)
            try await group.waitForAll()
        }
    }

    private static func talk(to path: SoakPath, _ manner: Int, _ results: SoakResults) async -> Bool {
        let began = ContinuousClock.now
        // Most clients stay to the end; some leave half way, and some half-close early.
        let limit = manner == 0 ? path.app.down / 2 : nil
        let exchanged = await LoopbackClient.talk(to: path.port, within: .seconds(40)) { peer in
            peer.exchange(sending: path.app.up, expecting: limit, finishes: manner == 1)
        }
        return results.add(exchanged, to: path, began: began, limit: limit)
    }

    /// Waits until no connection is open, and returns the footprint with the fewest descriptors besides pipes.
    ///
    /// A probe, a request of `patchbay` and the end of a stream each hold up to two descriptors for about 100 ms.
    /// Therefore several samples are taken, for 1 s or until the expected number is reached.
    private static func footprintAtRest(
        of broker: RunningBroker,
        with others: Int? = nil,
        in scratch: ScratchFolder
    ) async throws -> Footprint {
        do {
            try await eventually("no connection is open") {
                try await tunnels(of: broker).allSatisfy { $0.statistics.open == 0 }
            }
            // The connection to usbmuxd is one of the descriptors.
            try await eventually("usbmuxd is heard") {
                let text = try await broker.ask("status", "--json").joined(separator: "\n")
                let status = try JSONCoding.decoder().decode(BrokerStatus.self, from: Data(text.utf8))
                return status.sources.contains { $0.name == "usbmuxd" && $0.state == .ok }
            }
            let process = broker.daemon.processID
            var fewest = Footprint.now(of: process)
            let end = ContinuousClock.now + .seconds(1)
            return try await eventually("there are \(others ?? 0) descriptors besides pipes") {
                let now = Footprint.now(of: process)
                if now.others < fewest.others { fewest = now }
                guard let others else { return ContinuousClock.now < end ? nil : fewest }
                return now.others <= others ? now : nil
            }
        } catch {
            // Collects the open connections and their sockets for the error message.
            let open = try await tunnels(of: broker).filter { $0.statistics.open > 0 }
            let sockets = try await Program.run("ss", ["-tnxapo"], in: scratch)
                .filter { $0.contains("pid=\(broker.daemon.processID),") }
            throw TestSupportError("\(error)\n\(open.map(\.statistics))\n\(sockets.joined(separator: "\n"))")
        }
    }

    private static func tunnels(of broker: RunningBroker) async throws -> [Tunnel] {
        let text = try await broker.ask("tunnels", "--json").joined(separator: "\n")
        return try JSONCoding.decoder().decode(ListResponse<Tunnel>.self, from: Data(text.utf8)).items
    }

    private static func failures(of broker: RunningBroker) async throws -> [String: UInt64] {
        try await tunnels(of: broker).reduce(into: [:]) { $0.merge($1.statistics.failures, uniquingKeysWith: +) }
    }
}

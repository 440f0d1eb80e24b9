import FoundationEssentials
import Model
import TestSupport
import Testing

/// A host on the link forges adverts of an app on USB, while its phone is unplugged and plugged in.
///
/// Takes 15 s; with `PATCHBAY_SOAK=1` (`make soak`) 30 min, or `PATCHBAY_SOAK_MINUTES`.
@Suite(.serialized, .needs(.root, .namespaces, .avahi, .usbmuxd, .python), .timeLimit(.minutes(40)), .scratchFolder)
struct AttackerSoakTests {
    private let scratch = ScratchFolder.current
    private static let phone = "00008030-001A2B3C4D5E6F70"
    private static let (warming, length): (Duration, Duration) = {
        guard ProcessInfo.processInfo.environment["PATCHBAY_SOAK"] == "1" else { return (.seconds(5), .seconds(12)) }
        let minutes = ProcessInfo.processInfo.environment["PATCHBAY_SOAK_MINUTES"].flatMap { Int($0) } ?? 30
        return (.seconds(60), .seconds(max(1, minutes - 1) * 60))
    }()

    @Test func `with an attacker on the link every call reaches the app on USB and none the attacker`()
        async throws
    {
        let app = try await SampleApp(
            version: "cable",
            mode: .ios,
            boot: "b1",
            address: PhoneOptions.loopback,
            in: scratch
        )
        let (here, attacker) = try await MDNSNetwork.pair("here", "attacker", in: scratch)
        let rig = try await UsbmuxdFixture(in: scratch)
        let broker = try await RunningBroker(
            in: scratch,
            phones: rig,
            on: here,
            configuration: "[devices]\nprobe_ports = [\(app.port)]\n"
        )
        let list = try await LiveList(of: broker)
        try await rig.attach(Self.phone, .ofItsOwn)
        let id = try await list.first("the app is online") { $0.state == .online }.endpoint.id
        try await broker.setSecret(try #require(app.token), of: id.text)
        list.watch.kill()
        try await attacker.stopAvahi()
        let script = String(#filePath.dropLast("AttackerSoakTests.swift".count)) + "attacker.py"
        let attack = try await attacker.start(
            "python3",
            [script, "10.99.0.2", "10.99.0.1", "\(app.port)", app.bundle, app.boot, "7"]
        )
        try await attack.waitForLine("packets 100")

        let warm = try await Self.call(id, broker, rig, for: Self.warming)
        let before = Footprint.now(of: broker.daemon.processID)
        let calls = try await Self.call(id, broker, rig, for: Self.length)
        let after = Footprint.now(of: broker.daemon.processID)
        let packets = attack.output.count { $0.hasPrefix("packets") } * 100
        let endpoints = try await broker.endpoints()

        print(
            "attacker: \(packets) packets, \(warm + calls) calls, \(endpoints.count) endpoints; descriptors "
                + "\(before.descriptors) -> \(after.descriptors), threads \(before.threads) -> \(after.threads), "
                + "KiB \(before.kilobytes) -> \(after.kilobytes)"
        )
        #expect(calls > 0)
        #expect(!attack.output.contains { $0.hasPrefix("touched") }, "\(attack.output.suffix(20))")
        let approved = endpoints.filter { $0.approval == .approved || !$0.approvedRoutes.isEmpty }
        #expect(approved.map(\.id) == [id])
        #expect(endpoints.first { $0.id == id }?.approvedApp?.text == app.bundle)
        // A call or a probe may be in progress.
        #expect(after.descriptors <= before.descriptors + 8)
        #expect(after.kilobytes < before.kilobytes + 24 << 10)
    }

    /// Calls the app repeatedly and unplugs the phone after every tenth call. Returns the number of calls.
    private static func call(
        _ id: EndpointID,
        _ broker: RunningBroker,
        _ rig: UsbmuxdFixture,
        for length: Duration
    ) async throws -> Int {
        let end = ContinuousClock.now + length
        var count = 0
        while ContinuousClock.now < end {
            let answer = try await broker.ask("call", id.text, "launch_context").joined()
            #expect(answer.contains(#""version": "cable""#), "\(answer)")
            count += 1
            if count % 10 == 0 {
                // The next call waits for the phone.
                try await rig.detach(phone)
                async let plugged: Void = rig.attach(phone, .ofItsOwn)
                let held = try await broker.ask("call", id.text, "launch_context").joined()
                #expect(held.contains(#""version": "cable""#), "\(held)")
                try await plugged
            }
            try await Task.sleep(for: .milliseconds(100))
        }
        return count
    }
}

import Model
import TestSupport
import Testing

/// An app that is reachable over the network and USB, while its cable is plugged and unplugged.
@Suite(.needs(.root, .namespaces, .avahi, .usbmuxd, .python), .timeLimit(.minutes(2)), .scratchFolder) struct MoveTests
{
    private let scratch = ScratchFolder.current

    /// The situation during a call.
    private enum Stage {
        case onNetwork
        case plugging
        case onCable
        case unplugging

        /// The allowed outcomes of a call.
        var outcomes: Set<String> {
            switch self {
            case .onNetwork: ["network"]
            case .plugging: ["network", "cable"]
            case .onCable: ["cable"]
            // A call over USB during the unplugging is lost, and its client is reset.
            case .unplugging: ["network", "cable", "reset"]
            }
        }
    }

    private static let phone = "00008030-001A2B3C4D5E6F70"
    /// The time limit of a call in milliseconds.
    private static let timeLimit = 2_000

    @Test func `a tunnel switches to USB and back for new connections and keeps open ones`()
        async throws
    {
        let (here, there) = try await MDNSNetwork.pair("here", "there", in: scratch)
        // Two programs play one launch of one app; the version shows which of them answered.
        let onCable = try await SampleApp(version: "cable", boot: "b1", address: PhoneOptions.loopback, in: scratch)
        let onNetwork = try await SampleApp(version: "network", boot: "b1", port: onCable.port, on: there, in: scratch)
        let rig = try await UsbmuxdFixture(in: scratch)
        let broker = try await RunningBroker(
            in: scratch,
            phones: rig,
            on: here,
            configuration: "[devices]\nprobe_ports = [\(onCable.port)]\n"
        )
        let list = try await LiveList(of: broker)
        try await rig.attach(Self.phone, .ofItsOwn)
        let cabled = try await list.first("the app is on the cable") { $0.state == .online && $0.hasCable }
        let id = cabled.endpoint.id
        _ = try await onNetwork.advertise(through: there)
        let merged = try await list.first("both are one launch", from: cabled.next) { $0.routes.count > 1 }
        #expect(merged.endpoint.id == id)
        #expect(merged.endpoint.approvedRoutes.count == 1, "the cable approves no network address")
        _ = try await broker.ask("approve", id.text, "--address", "10.99.0.2")
        try await rig.detach(Self.phone)
        _ = try await list.first("it is on the network", from: merged.next) { $0.id == id && !$0.hasCable }
        let calls = try await Calls(on: here, port: broker.forward("tcp:0", "--endpoint", id.text))
        var stages = [Stage.onNetwork]
        func begin(_ stage: Stage) async throws {
            try await calls.nextStage()
            stages.append(stage)
        }

        try await calls.count(20)
        try await calls.open("old")
        // usbmuxd either runs all the time, or udev starts it with the first phone and stops it after the last.
        for isAlwaysThere in [true, false] {
            if !isAlwaysThere { try await rig.stop() }
            let before = list.now
            try await begin(.plugging)
            try await rig.attach(Self.phone, .ofItsOwn)
            if !isAlwaysThere { try await rig.start() }
            let both = try await list.first("it is on both", from: before) { $0.id == id && $0.hasCable }
            #expect(both.endpoint.routes.count > 1)
            #expect(try await broker.endpoints().map(\.id) == [id])

            try await begin(.onCable)
            try await calls.more("old")
            try await calls.open("new")
            // After 20 calls new connections use USB, because connects are served in order.
            try await calls.count(20)

            try await begin(.unplugging)
            if isAlwaysThere { try await rig.detach(Self.phone) } else { try await rig.stop() }
            // From now on no new connection uses USB, even before the list is updated.
            try await begin(.onNetwork)
            #expect(try await calls.hear("new") == "reset")
            try await calls.count(20)
            try await calls.more("old")
            _ = try await list.first("it is on the network", from: both.next) { $0.id == id && !$0.hasCable }
        }
        #expect(try await calls.end("old") == "network")
        try await calls.stop()

        let all = calls.all
        for call in all {
            let allowed = stages[call.began...call.ended].reduce(into: Set()) { $0.formUnion($1.outcomes) }
            #expect(allowed.contains(call.outcome), "\(call), \(stages[call.began...call.ended])")
            #expect(call.milliseconds < Self.timeLimit, "\(call)")
        }
        print(
            "move: \(all.count) calls, \(all.count { $0.outcome == "cable" }) over the cable, "
                + "\(all.count { $0.outcome == "reset" }) reset, the longest \(all.map(\.milliseconds).max() ?? 0) ms"
        )
    }
}

extension Endpoint {
    fileprivate var hasCable: Bool {
        routes.contains { route in
            if case .usb = route.route { return true }
            return false
        }
    }
}

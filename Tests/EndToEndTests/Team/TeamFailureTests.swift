import FoundationEssentials
import Glibc
import Model
import SystemIO
import TestSupport
import Testing

/// A team whose registry or one of whose hosts fails.
@Suite(.needs(.etcd, .usbmuxd, .python), .timeLimit(.minutes(5)), .scratchFolder) struct TeamFailureTests {
    private let scratch = ScratchFolder.current

    /// Returns whether a broker lists an endpoint of another host as outdated; nil if it does not list it.
    private func isStale(_ id: String, at broker: RunningBroker) async throws -> Bool? {
        try await broker.endpoints().first { $0.id.text == id }.map { $0.host?.staleSince != nil }
    }

    @Test(arguments: [true, false])
    func `without etcd both hosts work on, leases of phones end, and no new one is given until etcd is back`(
        isKilled: Bool
    ) async throws {
        let app = try await SampleApp(in: scratch)
        let rig = try await UsbmuxdFixture([Phones.one], in: scratch)
        let team = try await RunningTeam(in: scratch, ownPhones: rig, probing: app.port)
        let (lab1, lab2) = (team.lab1, team.lab2)
        let id = try await team.waitForApp(on: Phones.one, at: lab1)
        for (name, broker) in [("till", lab1), ("shop", lab2)] {
            _ = try await broker.ask("add", name, "127.0.0.1:\(app.port)", "--kind", "appreveal")
        }
        try await team.waitForEndpoint("shop.lab2", at: lab1)
        _ = try await lab1.ask("lease", id, "--for", "30m")
        #expect(try await lab1.leases().map(\.endpoint.text) == [id])
        #expect(try await isStale("shop.lab2", at: lab1) == false)

        let etcd = team.etcd[0]
        if isKilled { try await etcd.kill() } else { try etcd.freeze() }

        try await team.waitUntil { try await isStale("shop.lab2", at: lab1) == true }
        // The lease of the phone may have ended by now, of which its holder is told once.
        for name in ["till", "shop.lab2"] {
            _ = try await lab1.ask("call", name, "tap_element", "element_id=buy")
        }
        try await team.waitUntil { try await lab1.leases().isEmpty }
        let refusal = try await lab1.refused("lease", id)
        #expect(refusal.contains("the registry of the team is not available"), "\(refusal)")
        #expect(refusal.contains("cannot be leased now"), "\(refusal)")
        // The claim of a lease without a phone protects nothing.
        for name in ["till", "shop.lab2"] { _ = try await lab1.ask("lease", name) }
        for name in [id, "till", "shop.lab2"] {
            _ = try await lab1.ask("call", name, "tap_element", "element_id=buy")
        }

        if isKilled { try await team.restartEtcd(etcd) } else { try etcd.thaw() }

        try await team.waitUntil { try await isStale("shop.lab2", at: lab1) == false }
        try await team.waitUntil { try await lab1.start("lease", id).exitStatus(within: .seconds(30)) == .exited(0) }
        try await team.waitUntil {
            try await lab2.leases().contains { $0.device?.text == Phones.one && $0.id.hasSuffix(".lab1") }
        }
    }

    @Test func `the endpoints of a killed broker disappear at the other host, and return with the same IDs`()
        async throws
    {
        let app = try await SampleApp(in: scratch)
        let rig = try await UsbmuxdFixture([Phones.one], in: scratch)
        let team = try await RunningTeam(in: scratch, phones: rig, probing: app.port)
        let (lab1, lab2) = (team.lab1, team.lab2)
        _ = try await lab2.ask("add", "shop", "127.0.0.1:\(app.port)", "--kind", "appreveal")
        let id = try await team.waitForApp(on: Phones.one, at: lab2)
        func listed() async throws -> Set<String> {
            Set(try await lab1.endpoints().filter { $0.state == .online }.map(\.id.text))
        }
        let expected: Set = ["\(id).lab2", "shop.lab2"]
        try await team.waitUntil { try await listed() == expected }
        try await team.waitUntil { try await !lab1.devices().isEmpty }

        lab2.daemon.kill()

        try await team.waitUntil { try await lab1.endpoints().isEmpty }
        try await team.waitUntil { try await lab1.devices().isEmpty }
        let call = try await lab1.refused("call", "shop.lab2", "get_screen", "--wait", "0s")
        #expect(call.contains("shop.lab2"), "\(call)")
        let stream = try await lab1.refused("stdio", "\(Phones.one):\(app.port)")
        #expect(stream.contains("was attached to the host lab2, which is offline"), "\(stream)")
        try await lab1.daemon.waitForLine("host offline")
        let status = try await lab1.ask("status").joined(separator: "\n")
        #expect(status.contains("host lab1; no other host is online"), "\(status)")
        let list = try await lab1.ask("list", "--host", "lab2").joined()
        #expect(list.contains("`patchbay team` shows whether lab2 is online"), "\(list)")

        let lines = lab1.daemon.transcript.soFar.count
        try await lab2.restart()
        try await lab1.daemon.waitForLine("host online", from: lines)

        try await team.waitUntil { try await listed() == expected }
        try await team.waitUntil { try await !lab1.devices().isEmpty }
        for name in expected { _ = try await lab1.ask("call", name, "get_screen") }
    }

    @Test func `a host whose team listener has no address says so, until the address is free`() async throws {
        let team = try await RunningTeam(in: scratch)
        let lab2 = team.lab2
        lab2.daemon.kill()
        _ = try await lab2.daemon.exitStatus()
        let port = try #require(team.addresses[1].split(separator: ":").last.flatMap { UInt16($0) })
        let other = try Listener(on: .ipv4(INADDR_LOOPBACK, port: port))
        try await lab2.restart()

        let problem = "other hosts cannot reach this one: \(team.addresses[1]) is in use by another program"
        try await team.waitUntil { try await lab2.teamStatus().problem?.hasPrefix(problem) == true }
        let doctor = try await lab2.start("doctor")
        _ = try await doctor.exitStatus()
        #expect(doctor.log.contains(problem), "\(doctor.log)")
        other.close()
        try await team.waitUntil { try await lab2.teamStatus().problem == nil }
    }
}

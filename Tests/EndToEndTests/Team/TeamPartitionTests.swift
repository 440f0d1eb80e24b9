import FoundationEssentials
import Model
import TestSupport
import Testing

/// Two hosts of a team that do not reach each other, or of which one reaches nothing.
@Suite(.needs(.root, .namespaces, .etcd, .usbmuxd, .python), .timeLimit(.minutes(5)), .scratchFolder)
struct TeamPartitionTests {
    private let scratch = ScratchFolder.current

    @Test func `while hosts are separated and phones move, every stream reaches its own phone or ends`() async throws {
        let rigs = [try await UsbmuxdFixture(in: scratch), try await UsbmuxdFixture(in: scratch)]
        let port = try FreePorts.take()[0]
        let one = try PhoneReader(Phones.one, address: PhoneOptions.loopback, port: port, in: scratch)
        let two = try PhoneReader(Phones.two, address: "127.0.0.1", port: port, in: scratch)
        for phone in [one, two] { try await rigs[1].attach(phone.udid, phone.options) }
        let network = try await TeamNetwork(in: scratch)
        let team = try await RunningTeam(in: scratch, ownPhones: rigs[0], phones: rigs[1], network: network)
        try await team.waitUntil { try await team.lab1.devices().count == 2 }
        for phone in [one, two] { try await phone.forward(at: team.lab1) }
        try await withThrowingTaskGroup { readers in
            for phone in [one, two] { readers.addTask { await phone.run() } }
            for phone in [one, two] { try await phone.waitForAnswer() }
            let old = try await two.connect()
            #expect(old.udid == Phones.two)

            try await network.separateHosts()
            try await two.waitForFailure()
            // At lab2, phone two leaves and returns with another number. Phone one moves to lab1.
            try await rigs[1].detach(Phones.two)
            try await rigs[1].detach(Phones.one)
            try await rigs[0].attach(Phones.one, one.options)
            try await one.waitForAnswer()
            try await rigs[1].attach(Phones.two, two.options)
            try await network.repair()

            try await two.waitForAnswer()
            let ending = try await withDeadline(eventLimit, { "the stream to the phone that left is open" }) {
                (try? await old.stream.receiveSome()) ?? []
            }
            #expect(ending.isEmpty)

            try await network.separateHosts()
            try await rigs[0].detach(Phones.one)
            try await rigs[1].attach(Phones.one, one.options)
            try await network.repair()
            for phone in [one, two] { try await phone.waitForAnswer() }
            readers.cancelAll()
        }
        for phone in [one, two] { #expect(phone.wrongAnswers == []) }
    }

    @Test func `separated hosts keep one lease of a phone, and a call to the other host fails with its name`()
        async throws
    {
        let network = try await TeamNetwork(in: scratch)
        let phone = try await SharedPhone(in: scratch, network: network)
        let (lab1, lab2) = (phone.team.lab1, phone.team.lab2)
        let remote = "\(phone.ids[1]).lab2"
        try await phone.team.waitForEndpoint(remote, at: lab1)
        // The next call finds an idle connection.
        _ = try await lab1.ask("call", remote, "get_screen")
        try await network.separateHosts()

        let call = try await lab1.refused("call", remote, "get_screen")
        #expect(call.contains("the broker of the host lab2 is unreachable"), "\(call)")
        let listed = try #require(try await lab1.endpoints().first { $0.id.text == remote })
        #expect(listed.host?.staleSince == nil)
        _ = try await lab1.ask("lease", phone.ids[0])
        try await phone.team.waitUntil { try await lab2.leases().contains { $0.id.hasSuffix(".lab1") } }
        #expect(try await phone.tap(at: lab2).log.contains("on the host lab1"))
        #expect(try await lab2.refused("lease", phone.ids[1]).contains("on the host lab1"))
        #expect(!phone.app.program.output.contains("call: tap_element"))
        #expect(try await phone.tap(at: lab1).exitStatus() == .exited(0))

        try await network.repair()

        try await phone.team.waitUntil {
            try await lab1.start("call", remote, "get_screen").exitStatus(within: .seconds(30)) == .exited(0)
        }
    }

    @Test func `a host that is cut off ends its lease before another host grants the next, and accepts that later`()
        async throws
    {
        let network = try await TeamNetwork(in: scratch)
        let phone = try await SharedPhone(in: scratch, network: network)
        let (team, lab1, lab2) = (phone.team, phone.team.lab1, phone.team.lab2)
        for _ in 0..<2 {
            _ = try await lab1.ask("lease", phone.ids[0], "--for", "30m")
            try await team.waitUntil { try await lab2.leases().contains { $0.id.hasSuffix(".lab1") } }

            try await network.cutOffLab1()
            let wait = try await lab2.start("lease", phone.ids[1], "--wait", "1m")
            #expect(try await wait.exitStatus() == .exited(0), "\(wait.log)")

            #expect(try await lab1.leases().isEmpty)
            for _ in 0..<3 {
                let tap = try await phone.tap(at: lab1)
                #expect(try await tap.exitStatus() != .exited(0), "\(tap.log)")
                #expect(tap.log.contains("ended at") && tap.log.contains("lost its connection"), "\(tap.log)")
            }
            let refusal = try await lab1.refused("lease", phone.ids[0])
            #expect(refusal.contains("the registry of the team is not available"), "\(refusal)")
            let stale = try await lab1.endpoints().filter { $0.id.host != nil }
            #expect(!stale.isEmpty && stale.allSatisfy { $0.host?.staleSince != nil })

            try await network.repair()

            try await team.waitUntil { try await lab1.leases().map { $0.id.hasSuffix(".lab2") } == [true] }
            #expect(try await phone.tap(at: lab1).log.contains("on the host lab2"))
            #expect(try await phone.tap(at: lab2).exitStatus() == .exited(0))
            _ = try await lab2.ask("unlease", phone.ids[1])
            try await team.waitUntil { try await lab1.leases().isEmpty }
        }
    }
}

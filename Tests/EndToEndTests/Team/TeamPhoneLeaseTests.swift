import FoundationEssentials
import Model
import TestSupport
import Testing

/// Leases of one phone that is attached to two hosts.
@Suite(.needs(.root, .etcd, .usbmuxd, .python), .timeLimit(.minutes(5)), .scratchFolder) struct TeamPhoneLeaseTests {
    private let scratch = ScratchFolder.current

    @Test func `a lease that one host grants refuses the calls and connections of all clients at the other host`()
        async throws
    {
        let phone = try await SharedPhone(in: scratch)
        let (lab1, lab2) = (phone.team.lab1, phone.team.lab2)
        let socket = try await DeviceSocket(Phones.one, lab2, in: scratch)
        try await socket.lists([Phones.one])
        _ = try socket.stream(to: phone.app.port)

        _ = try await lab1.ask("lease", phone.ids[0])
        let claim: Lease = try await eventually("lab2 shows the lease") { try await lab2.leases().first }

        #expect(claim.id.hasSuffix(".lab1") && !claim.isOwn && claim.device?.text == Phones.one, "\(claim)")
        let call = try await phone.tap(at: lab2)
        #expect(call.log.contains("is leased to") && call.log.contains("on the host lab1"), "\(call.log)")
        #expect(!phone.app.program.output.contains("call: tap_element"))
        let lease = try await lab2.refused("lease", phone.ids[1])
        #expect(lease.contains("is leased to") && lease.contains("on the host lab1"), "\(lease)")
        let peer = try MuxPeer(to: socket.path)
        let number = try #require(try peer.devices()[Phones.one])
        #expect(try peer.dial(number, phone.app.port) == 3)
        _ = try await lab2.ask("call", phone.ids[1], "get_screen")
        #expect(try await phone.tap(at: lab1).exitStatus() == .exited(0))

        _ = try await lab1.ask("unlease", phone.ids[0])

        try await phone.team.waitUntil { try await phone.tap(at: lab2).exitStatus() == .exited(0) }
        _ = try await lab2.ask("lease", phone.ids[1])
    }

    @Test func `clients of both hosts never hold the lease of one phone at the same time, and each gets its turns`()
        async throws
    {
        let phone = try await SharedPhone(in: scratch)
        let (first, second) = (phone.team.lab1, phone.team.lab2)
        var clients: [(socket: String, id: String)] = []
        for (number, (broker, id)) in [(first, phone.ids[0]), (second, phone.ids[1])].enumerated() {
            for name in ["a", "b", "c"] {
                let socket = scratch.file("\(name)\(number).sock")
                let scopes = ["registry.read", "endpoint.call"].flatMap { ["--scope", $0] }
                let pair = try await broker.start(["pair", "--socket", socket] + scopes)
                #expect(try await pair.exitStatus() == .exited(0), "\(pair.log)")
                clients.append((socket, id))
            }
        }
        // This client of lab2 takes the lease at lab1.
        clients.append((second.socket, "\(phone.ids[0]).lab1"))
        let (log, lock) = (scratch.file("turns"), scratch.file("lock"))
        let turn = "flock --nonblock \(lock) sh -c 'sleep 0.05; echo alone >> \(log)' || echo together >> \(log)"
        let turns = 3

        try await withThrowingTaskGroup { group in
            for (socket, id) in clients {
                group.addTask {
                    for _ in 0..<turns {
                        try await Program.run(
                            Executable.built("patchbay"),
                            ["lease", id, "--wait", "2m", "--", "sh", "-c", turn],
                            in: scratch,
                            environment: ["PATCHBAY_SOCKET": socket, "HOME": scratch.path],
                            within: .seconds(120)
                        )
                    }
                }
            }
            try await group.waitForAll()
        }

        let lines = try String(contentsOfFile: log, encoding: .utf8).split(separator: "\n")
        #expect(lines.count == turns * clients.count && lines.allSatisfy { $0 == "alone" }, "\(lines)")
        for broker in [first, second] { try await phone.team.waitUntil { try await broker.leases().isEmpty } }
    }

    @Test func `a broker that hangs loses its lease to a waiting client of the other host, and accepts that later`()
        async throws
    {
        let phone = try await SharedPhone(in: scratch)
        let (team, lab1, lab2) = (phone.team, phone.team.lab1, phone.team.lab2)
        _ = try await lab1.ask("lease", phone.ids[0], "--for", "30m")
        try await team.waitUntil { try await lab2.leases().contains { $0.id.hasSuffix(".lab1") } }

        lab1.daemon.freeze()
        let wait = try await lab2.start("lease", phone.ids[1], "--wait", "1m")
        #expect(try await wait.exitStatus(within: .seconds(60)) == .exited(0), "\(wait.log)")
        lab1.daemon.thaw()

        try await team.waitUntil { try await lab1.leases().map(\.id).allSatisfy { $0.hasSuffix(".lab2") } }
        try await team.waitUntil { try await !lab1.leases().isEmpty }
        let call = try await phone.tap(at: lab1)
        // The former holder learns first that its own lease has ended.
        #expect(call.log.contains("your lease l1 ended at "), "\(call.log)")
        #expect(!phone.app.program.output.contains("call: tap_element"))
        #expect(try await lab2.leases().map(\.isOwn) == [true])
        #expect(try await phone.tap(at: lab2).exitStatus() == .exited(0))
    }

    @Test func `a claim that a host writes by hand is deleted by the running host it names, or with a removal`()
        async throws
    {
        let phone = try await SharedPhone(in: scratch)
        let (team, lab1, lab2) = (phone.team, phone.team.lab1, phone.team.lab2)
        let target = "device-\(Phones.one)"
        let forge = { (host: String) in
            try await team.forgeClaim(
                on: target,
                as: lab2,
                host: host,
                endpoint: "\(phone.ids[1]).\(host)",
                device: UDID(Phones.one),
                holderKey: "uid:0"
            )
        }
        for host in ["lab1", "lab2"] {
            try await forge(host)
            try await team.waitUntil {
                try await team.etcdctl(["get", "/patchbay/v1/claim/\(target)"], as: lab2).isEmpty
            }
        }
        // A member whose broker does not run.
        let lab3 = TeamMember(
            name: try #require(HostName("lab3")),
            key: try #require(KeyPin(String(repeating: "A", count: 52))),
            addedAt: Date()
        )
        let json = String(decoding: try JSONCoding.encoder().encode(lab3), as: UTF8.self)
        try await team.etcdctl(["put", "/patchbay/v1/member/lab3", json], as: lab1, user: "root")
        try await forge("lab3")
        try await team.waitUntil { try await lab1.leases().contains { $0.holder.text.contains("forger") } }

        let remote = ["call", "\(phone.ids[0]).lab1", "tap_element", "element_id=buy"]
        for (broker, words) in [(lab1, ["call", phone.ids[0]] + remote.dropFirst(2)), (lab2, remote)] {
            let call = try await broker.start(words)
            #expect(try await call.exitStatus() != .exited(0))
            #expect(call.log.contains("is leased to \"forger\" on the host lab3"), "\(call.log)")
        }
        #expect(!phone.app.program.output.contains("call: tap_element"))

        _ = try await lab1.ask("team", "remove", "lab3")

        #expect(try await team.etcdctl(["get", "/patchbay/v1/claim/\(target)"], as: lab2).isEmpty)
        try await team.waitUntil { try await phone.tap(at: lab1).exitStatus() == .exited(0) }
    }
}

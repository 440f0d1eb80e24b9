import Crypto
import FoundationEssentials
import Model
import Rig
import Testing

@testable import Pairing

@Suite struct TrustTests {
    private static let udid = UDID("00008120-000A1B2C3D4E5F60")
    private static let home = LANRoute(address: "192.168.1.20", port: 49_213, interface: "wlan0")
    private static let away = LANRoute(address: "192.168.1.66", port: 49_213, interface: "wlan0")

    private static func endpoint(
        _ routes: [Route],
        host: String = "iphone.local",
        boot: String? = "1",
        sources: [Sighting.Source] = [.bonjour]
    ) throws -> Endpoint {
        Endpoint(
            id: try #require(EndpointID("shop-iphone")),
            kind: .appreveal,
            app: Untrusted("com.example.shop"),
            name: Untrusted("Shop"),
            place: Endpoint.Place(udid: udid, host: Untrusted(host)),
            state: .online,
            approval: .discovered,
            routes: routes,
            sources: sources,
            boot: boot.map { Untrusted($0) },
            since: Date(timeIntervalSince1970: 0),
            lastSeen: Date(timeIntervalSince1970: 0)
        )
    }

    private static func usb() throws -> Route { .usb(USBRoute(udid: try #require(udid), port: 49_213)) }

    @Test func `the network is only listed, the cable and the configuration are a yes`() throws {
        let lan = try Self.endpoint([.lan(Self.home)])
        let usb = try Self.endpoint([Self.usb()], sources: [.usb])
        let written = try Self.endpoint([.lan(Self.home)], sources: [.config])

        #expect(ApprovalRule.approval(of: lan, nil) == .discovered)
        #expect(ApprovalRule.approval(of: usb, nil) == .approved)
        #expect(ApprovalRule.approval(of: written, nil) == .approved)
        guard case .refused = ApprovalRule.decide(.agent, .lan(Self.home), of: lan, nil) else {
            Issue.record("an agent may dial what nobody approved")
            return
        }
        #expect(ApprovalRule.decide(.person, .lan(Self.home), of: lan, nil) == .allowedAndApproves)
        #expect(ApprovalRule.decide(.agent, try Self.usb(), of: usb, nil) == .allowed)
    }

    @Test func `an endpoint that is on the cable too does not vouch for its adverts`() throws {
        let both = try Self.endpoint([Self.usb(), .lan(Self.home)], sources: [.bonjour, .usb])
        #expect(ApprovalRule.approvedRoutes(of: both, nil) == [try Self.usb()])
    }

    @Test func `a lookalike on another host or address is changed: no traffic, not even for a person by the way`()
        async throws
    {
        try await withScratchFolder { scratch in
            let store = try Bench.store(in: scratch)
            let real = try Self.endpoint([.lan(Self.home)])
            let approval = try await store.approve(real, by: Bench.owner, from: Bench.socket)
            #expect(ApprovalRule.decide(.agent, .lan(Self.home), of: real, approval) == .allowed)

            let fakes = [
                try Self.endpoint([.lan(Self.away)]), try Self.endpoint([.lan(Self.home)], host: "evil.local"),
                try Self.endpoint([.lan(LANRoute(address: "192.168.1.20", port: 49_213, interface: "eth9"))]),
            ]
            for fake in fakes {
                #expect(ApprovalRule.approval(of: fake, approval) == .changed)
                for user in [ApprovalRule.User.agent, .person] {
                    guard case .refused = ApprovalRule.decide(user, fake.routes[0], of: fake, approval) else {
                        Issue.record("\(fake.routes) is dialled")
                        return
                    }
                }
            }
            // An address that joins the real one gets nothing, and takes nothing away.
            let joined = try Self.endpoint([.lan(Self.home), .lan(Self.away)])
            #expect(ApprovalRule.approvedRoutes(of: joined, approval) == [.lan(Self.home)])
            #expect(ApprovalRule.approval(of: joined, approval) == .approved)
        }
    }

    @Test func `a secret goes to where it was given for, and nowhere else`() async throws {
        try await withScratchFolder { scratch in
            let clock = TestClock()
            var store = try Bench.store(in: scratch, clock: clock)
            let secret = try EndpointSecret("f00dfeed" + String(repeating: "5", count: 56))
            let real = try Self.endpoint([.lan(Self.home)])
            await #expect(throws: PairingError.self) {
                try await store.setSecret(secret, of: real, by: Bench.owner, from: Bench.socket)
            }
            try await store.approve(real, by: Bench.owner, from: Bench.socket)
            try await store.setSecret(secret, of: real, by: Bench.owner, from: Bench.socket)
            try await store.close()
            store = try Bench.store(in: scratch, clock: clock)

            #expect(try await store.secret(of: real, over: .lan(Self.home))?.reveal() == secret.reveal())
            let others = [
                try Self.endpoint([.lan(Self.away)]), try Self.endpoint([.lan(Self.home)], host: "evil.local"),
                try Self.endpoint([.lan(Self.home)], boot: "2"), try Self.endpoint([.lan(Self.home)], boot: nil),
                try Self.endpoint([Self.usb()]),
            ]
            for other in others.dropLast() {
                await #expect(throws: PairingError.self) { try await store.secret(of: other, over: other.routes[0]) }
            }
            // The same launch on the cable is the same app.
            #expect(try await store.secret(of: others[4], over: others[4].routes[0]) != nil)
            // Not to a route that it does not have.
            await #expect(throws: PairingError.self) { try await store.secret(of: real, over: .lan(Self.away)) }
            // A new yes, even to a lookalike, finds no secret.
            try await store.approve(others[0], by: Bench.owner, from: Bench.socket)
            #expect(try await store.secret(of: others[0], over: .lan(Self.away)) == nil)
        }
    }

    @Test func `a secret that its app did not take is not held, until another one is set or it is taken after all`()
        async throws
    {
        try await withScratchFolder { scratch in
            let store = try Bench.store(in: scratch)
            let endpoint = try Self.endpoint([Self.usb()], sources: [.usb])
            try await store.setSecret(EndpointSecret("abc"), of: endpoint, by: Bench.owner, from: Bench.socket)

            store.noteSecret(of: endpoint.id, isTaken: false)
            #expect(await !store.holdsSecret(of: endpoint))
            // Shown it is again: the app may have been on its way down.
            #expect(try await store.secret(of: endpoint, over: endpoint.routes[0])?.reveal() == "abc")
            store.noteSecret(of: endpoint.id, isTaken: true)
            #expect(await store.holdsSecret(of: endpoint))

            store.noteSecret(of: endpoint.id, isTaken: false)
            try await store.setSecret(EndpointSecret("def"), of: endpoint, by: Bench.owner, from: Bench.socket)
            #expect(await store.holdsSecret(of: endpoint))
        }
    }

    @Test func `giving the secret of an app on the cable is the yes, and forgetting it is forgetting it`() async throws
    {
        try await withScratchFolder { scratch in
            let store = try Bench.store(in: scratch)
            let endpoint = try Self.endpoint([Self.usb()], sources: [.usb])
            try await store.setSecret(EndpointSecret("abc"), of: endpoint, by: Bench.owner, from: Bench.socket)
            #expect(await store.approval(of: endpoint.id)?.place == .cable(try #require(Self.udid)))
            #expect(await store.holdsSecret(of: endpoint))

            try await store.forgetSecret(of: endpoint.id, by: Bench.owner, from: Bench.socket)
            #expect(try await store.secret(of: endpoint, over: endpoint.routes[0]) == nil)
        }
    }

    @Test(arguments: ["", "a b", "a\r\nX: y", "ä", String(repeating: "a", count: 4_097)])
    func `what cannot stand in a header is no secret`(text: String) {
        #expect(throws: PairingError.self) { try EndpointSecret(text) }
    }

    @Test func `a secret is never printed`() throws {
        let secret = try EndpointSecret("hunter2hunter2")
        var dumped = ""
        dump(secret, to: &dumped)
        for text in ["\(secret)", String(reflecting: secret), "\([secret])", dumped] {
            #expect(!text.contains("hunter2"))
        }
    }

    @Test func `a flipped byte of a sealed secret is noticed, and no other context opens it`() throws {
        let keys = Keyring(.init(size: .bits256))
        let id = try #require(EndpointID("shop"))
        func record(_ sealed: Data, _ endpoint: EndpointID = id, approval: String = "a", boot: String = "1")
            -> SecretRecord
        {
            SecretRecord(
                endpoint: endpoint,
                approval: approval,
                boot: boot,
                sealed: sealed,
                set: EffectiveTime(milliseconds: 0)
            )
        }
        let sealed = try keys.seal(EndpointSecret("hunter2"), context: record(Data()).context)
        #expect(try keys.open(record(sealed)).reveal() == "hunter2")
        for index in sealed.indices {
            var flipped = sealed
            flipped[index] ^= 1
            #expect(throws: (any Error).self) { try keys.open(record(flipped)) }
        }
        let other = try #require(EndpointID("bank"))
        for wrong in [record(sealed, other), record(sealed, approval: "b"), record(sealed, boot: "2")] {
            #expect(throws: (any Error).self) { try keys.open(wrong) }
        }
    }

    @Test func `of a no that could not be saved and a yes after it, the yes stands, and the other way round`() throws {
        let real = try Self.endpoint([.lan(Self.home)])
        let place = try #require(ApprovalRule.place(of: real))
        let approval = Approval(id: "yes", endpoint: real.id, by: Bench.owner, at: Date(), place: place)
        var (yes, no) = (Change(), Change())
        yes.approvals = [approval]
        no.unapproved = [real.id]

        for (changes, approved) in [([no, yes], true), ([yes, no], false)] {
            var ledger = Ledger()
            ledger.apply(changes[0] + changes[1])
            #expect((ledger.approvals[real.id] == approval) == approved)
        }
    }
}

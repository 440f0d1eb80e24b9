import Crypto
import FoundationEssentials
import Model
import TestSupport
import Testing

@testable import AccessControl

@Suite struct ApprovalServiceTests {
    private static let udid = UDID("00008120-000A1B2C3D4E5F60")
    private static let shop = SanitizedText("com.example.shop")

    private static func lan(
        _ address: String = "192.168.1.20",
        host: String? = "iphone.local",
        port: UInt16 = 49_213,
        interface: String = "wlan0",
        app: SanitizedText = shop,
        boot: String? = "1"
    ) -> EndpointRoute {
        EndpointRoute(
            .lan(LANRoute(address: address, port: port, interface: interface, host: host.map { SanitizedText($0) })),
            app: app,
            boot: boot.map { SanitizedText($0) }
        )
    }

    private static func usb(boot: String? = "1") throws -> EndpointRoute {
        let route = USBRoute(udid: try #require(udid), port: 49_213)
        return EndpointRoute(.usb(route), app: shop, boot: boot.map { SanitizedText($0) })
    }

    private static func endpoint(_ routes: EndpointRoute...) throws -> Endpoint {
        Endpoint(
            id: try #require(EndpointID("shop-iphone")),
            kind: .appreveal,
            app: shop,
            name: SanitizedText("Shop"),
            state: .online,
            approval: .discovered,
            routes: routes,
            since: Date(timeIntervalSince1970: 0),
            lastSeen: Date(timeIntervalSince1970: 0)
        )
    }

    @Test func `an advert is only listed; a cable and a configured address are approved`() throws {
        #expect(ApprovalPolicy.verdict(on: Self.lan(), nil) == .discovered)
        #expect(ApprovalPolicy.verdict(on: try Self.usb(), nil) == .approved)
        #expect(ApprovalPolicy.verdict(on: Self.lan(host: nil), nil) == .approved)

        let advert = try Self.endpoint(Self.lan())
        let refusal = try #require(ApprovalPolicy.refusal(of: advert, nil))
        #expect(refusal.next == "patchbay approve shop-iphone --address 192.168.1.20")
        #expect(refusal.detail.contains("192.168.1.20:49213"))
        #expect(ApprovalPolicy.refusal(of: try Self.endpoint(Self.usb(), Self.lan()), nil) == nil)
    }

    @Test func `a cable does not approve the adverts that are listed with it`() throws {
        let both = try Self.endpoint(Self.usb(), Self.lan())
        #expect(ApprovalPolicy.approvedRoutes(of: both, nil) == [try Self.usb()])
    }

    @Test func `an approval is for one app on one host at one address`() async throws {
        try await withScratchFolder { scratch in
            let store = try Bench.store(in: scratch)
            let real = try Self.endpoint(Self.lan())
            let approval = try await store.approve(real, by: Bench.owner, from: Bench.socket)
            #expect(ApprovalPolicy.verdict(on: Self.lan(), approval) == .approved)
            // The port and the launch change each time that the app is started.
            #expect(ApprovalPolicy.verdict(on: Self.lan(port: 5_000, boot: "2"), approval) == .approved)

            let fakes = [
                Self.lan("192.168.1.66"), Self.lan(host: "evil.local"), Self.lan(interface: "eth9"),
                Self.lan(app: SanitizedText("com.example.bank")), Self.lan(port: 22),
            ]
            for fake in fakes {
                guard case .changed = ApprovalPolicy.verdict(on: fake, approval) else {
                    Issue.record("\(fake) is dialled")
                    continue
                }
                #expect(ApprovalPolicy.refusal(of: try Self.endpoint(fake), approval) != nil)
            }
            // An address that joins the real one gets nothing, and takes nothing away.
            let joined = try Self.endpoint(Self.lan(), Self.lan("192.168.1.66"))
            #expect(ApprovalPolicy.approvedRoutes(of: joined, approval) == [Self.lan()])
            #expect(ApprovalPolicy.approval(of: joined, approval) == .approved)
        }
    }

    @Test func `an approval names its address, and a port below 1024 as well`() async throws {
        try await withScratchFolder { scratch in
            let store = try Bench.store(in: scratch)
            let endpoint = try Self.endpoint(Self.lan("192.168.1.20", port: 80), Self.lan("192.168.1.21"))
            await #expect(throws: AccessError.self) {
                try await store.approve(endpoint, by: Bench.owner, from: Bench.socket)
            }
            await #expect(throws: AccessError.self) {
                try await store.approve(endpoint, at: "192.168.1.99", by: Bench.owner, from: Bench.socket)
            }
            let second = try await store.approve(
                endpoint,
                at: "192.168.1.21",
                by: Bench.owner,
                from: Bench.socket
            )
            #expect(second.addresses.map(\.address) == ["192.168.1.21"])
            let both = try await store.approve(
                endpoint,
                at: "192.168.1.20",
                port: 80,
                by: Bench.owner,
                from: Bench.socket
            )
            #expect(both.addresses.map(\.address) == ["192.168.1.21", "192.168.1.20"])
            #expect(ApprovalPolicy.approvedRoutes(of: endpoint, both).count == 2)
            await #expect(throws: AccessError.self) {
                try await store.approve(try Self.endpoint(Self.usb()), by: Bench.owner, from: Bench.socket)
            }
        }
    }

    @Test func `a secret is sent over the route and to the launch that it was given for`() async throws {
        try await withScratchFolder { scratch in
            let clock = TestClock()
            var store = try Bench.store(in: scratch, clock: clock)
            let secret = try EndpointSecret("f00dfeed" + String(repeating: "5", count: 56))
            let real = try Self.endpoint(Self.lan())
            await #expect(throws: AccessError.self) {
                try await store.setSecret(secret, of: real, by: Bench.owner, from: Bench.socket)
            }
            try await store.approve(real, by: Bench.owner, from: Bench.socket)
            try await store.setSecret(secret, of: real, by: Bench.owner, from: Bench.socket)
            try await store.close()
            store = try Bench.store(in: scratch, clock: clock)

            #expect(try await store.secret(of: real, over: Self.lan())?.reveal() == secret.reveal())
            let others = [
                Self.lan("192.168.1.66"), Self.lan(host: "evil.local"), Self.lan(boot: "2"), Self.lan(boot: nil),
                // The cable of the same launch has no secret: none was given for it.
                try Self.usb(),
            ]
            for other in others {
                let endpoint = try Self.endpoint(other)
                await #expect(throws: AccessError.self) { try await store.secret(of: endpoint, over: other) }
            }
            // Not over a route that the endpoint does not have.
            await #expect(throws: AccessError.self) { try await store.secret(of: real, over: try Self.usb()) }
            // Another approval finds no secret.
            let moved = try Self.endpoint(Self.lan(host: "evil.local"))
            try await store.approve(moved, by: Bench.owner, from: Bench.socket)
            #expect(try await store.secret(of: moved, over: moved.routes[0]) == nil)
        }
    }

    @Test func `approving an address gives it no secret that was given for the cable, and takes none away`()
        async throws
    {
        try await withScratchFolder { scratch in
            let store = try Bench.store(in: scratch)
            let both = try Self.endpoint(Self.usb(), Self.lan())
            try await store.setSecret(EndpointSecret("abc"), of: both, by: Bench.owner, from: Bench.socket)
            try await store.approve(both, by: Bench.owner, from: Bench.socket)

            #expect(try await store.secret(of: both, over: try Self.usb())?.reveal() == "abc")
            await #expect(throws: AccessError.self) { try await store.secret(of: both, over: Self.lan()) }
            let passages = store.clearance(of: both).passages
            #expect(passages.map { $0.secret != nil } == [true, false])
        }
    }

    @Test func `a secret that its app did not take is not held, until another one is set or it is taken after all`()
        async throws
    {
        try await withScratchFolder { scratch in
            let store = try Bench.store(in: scratch)
            let endpoint = try Self.endpoint(Self.usb())
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

    @Test func `a secret for an unseen launch is for the first that takes it, on its own route`() async throws {
        try await withScratchFolder { scratch in
            let store = try Bench.store(in: scratch)
            let (old, new, later) = (Self.lan(boot: "1"), Self.lan(boot: "2"), Self.lan(boot: "3"))
            let real = try Self.endpoint(old)
            try await store.approve(real, by: Bench.owner, from: Bench.socket)
            func give() async throws {
                try await store.setSecret(
                    EndpointSecret("abc"),
                    of: real,
                    isForUnseen: true,
                    by: Bench.owner,
                    from: Bench.socket
                )
            }
            func sent(_ routes: EndpointRoute...) async throws -> [Bool] {
                var sent: [Bool] = []
                for route in routes {
                    let endpoint = try Self.endpoint(route)
                    sent.append((try? await store.secret(of: endpoint, over: route)) != nil)
                }
                return sent
            }
            try await give()
            #expect(try await sent(old, new) == [true, true])
            let others = try await sent(
                try Self.usb(),
                Self.lan("192.168.1.66", boot: "2"),
                Self.lan(host: "evil.local", boot: "2")
            )
            #expect(others == [false, false, false])

            // The launch that was there refuses it on its way down.
            try await store.settleSecret(of: real, isTaken: false)
            #expect(try await sent(new) == [true])
            try await store.settleSecret(of: try Self.endpoint(new), isTaken: true)
            #expect(try await sent(old, new, later) == [false, true, false])
            #expect(store.clearance(of: try Self.endpoint(new)).passages.first?.secret?.reveal() == "abc")

            try await give()
            try await store.settleSecret(of: try Self.endpoint(new), isTaken: false)
            #expect(try await sent(old, new, later) == [true, false, false])
        }
    }

    @Test func `a secret that is given while its app is away is for its next launch at an approved address`()
        async throws
    {
        try await withScratchFolder { scratch in
            let store = try Bench.store(in: scratch)
            try await store.approve(try Self.endpoint(Self.lan()), by: Bench.owner, from: Bench.socket)
            let away = try Self.endpoint()
            func give(on port: UInt16?) async throws {
                try await store.setSecret(
                    EndpointSecret("abc"),
                    of: away,
                    on: port,
                    isForUnseen: port == nil,
                    by: Bench.owner,
                    from: Bench.socket
                )
            }
            func isSent(_ route: EndpointRoute) async throws -> Bool {
                (try? await store.secret(of: try Self.endpoint(route), over: route)) != nil
            }
            try await give(on: Self.lan().port)
            #expect(try await isSent(Self.lan(boot: nil)))
            #expect(try await !isSent(Self.lan(boot: "1")))
            #expect(try await !isSent(Self.lan("192.168.1.66", boot: nil)))
            #expect(try await !isSent(Self.lan(host: "evil.local", boot: nil)))
            try await give(on: Self.lan().port + 1)
            #expect(try await !isSent(Self.lan(boot: nil)))

            // A bare token names no port: the first launch that takes it is its launch.
            try await give(on: nil)
            #expect(try await isSent(Self.lan(boot: "1")))
            #expect(try await !isSent(Self.lan("192.168.1.66")))
            try await store.settleSecret(of: try Self.endpoint(Self.lan(boot: "1")), isTaken: true)
            #expect(try await isSent(Self.lan(boot: "1")))
            #expect(try await !isSent(Self.lan(boot: "2")))

            try await store.withdrawApproval(of: away.id, by: Bench.owner, from: Bench.socket)
            await #expect(throws: AccessError.self) { try await give(on: nil) }
        }
    }

    @Test func `the secret of an app on the cable is kept without an approval, and forgotten on request`() async throws
    {
        try await withScratchFolder { scratch in
            let store = try Bench.store(in: scratch)
            let endpoint = try Self.endpoint(Self.usb())
            try await store.setSecret(EndpointSecret("abc"), of: endpoint, by: Bench.owner, from: Bench.socket)
            #expect(await store.approval(of: endpoint.id) == nil)
            #expect(await store.holdsSecret(of: endpoint))

            try await store.forgetSecret(of: endpoint.id, by: Bench.owner, from: Bench.socket)
            #expect(try await store.secret(of: endpoint, over: endpoint.routes[0]) == nil)
        }
    }

    @Test(arguments: ["", "a b", "a\r\nX: y", "ä", String(repeating: "a", count: 4_097)])
    func `what cannot stand in a header is no secret`(text: String) {
        #expect(throws: AccessError.self) { try EndpointSecret(text) }
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
        func record(_ sealed: Data, _ endpoint: EndpointID = id, origin: String = "a", launch: String = "1")
            -> SecretRecord
        {
            SecretRecord(
                endpoint: endpoint,
                bindings: [.init(origin: origin, launch: launch)],
                sealed: sealed,
                set: MonotonicTime(milliseconds: 0)
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
        for wrong in [record(sealed, other), record(sealed, origin: "b"), record(sealed, launch: "2")] {
            #expect(throws: (any Error).self) { try keys.open(wrong) }
        }
    }

    @Test func `of an approval and a revocation that are saved together, the later one stands`() throws {
        let real = try Self.endpoint(Self.lan())
        let approval = Approval(
            id: "yes",
            endpoint: real.id,
            by: Bench.owner,
            at: Date(),
            app: Self.shop,
            host: SanitizedText("iphone.local"),
            addresses: []
        )
        var (yes, no) = (ChangeSet(), ChangeSet())
        yes.approvals = [approval]
        no.unapproved = [real.id]

        for (changes, approved) in [([no, yes], true), ([yes, no], false)] {
            var ledger = AccessState()
            ledger.apply(changes[0] + changes[1])
            #expect((ledger.approvals[real.id] == approval) == approved)
        }
    }
}

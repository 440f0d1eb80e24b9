import Crypto
import FoundationEssentials
import Model
import Samples
import TestSupport
import Testing

@testable import AccessControl

@Suite(.scratchFolder) struct ApprovalServiceTests {
    private let scratch = ScratchFolder.current
    private static let shop = SanitizedText("com.example.shop")

    private static func network(
        _ address: String = "192.168.1.20",
        machine: String? = "iphone.local",
        port: UInt16 = 49_213,
        interface: String = "wlan0",
        app: SanitizedText = shop,
        boot: String? = "1"
    ) -> EndpointRoute {
        EndpointRoute(
            .network(address, port: port, interface: interface, machine: machine),
            app: app,
            launchID: boot.map { SanitizedText($0) }
        )
    }

    private static func usb(boot: String? = "1") -> EndpointRoute {
        EndpointRoute(.usb(port: 49_213), app: shop, launchID: boot.map { SanitizedText($0) })
    }

    private static func endpoint(_ routes: EndpointRoute...) -> Endpoint {
        var endpoint = Endpoint.sample("shop-iphone", app: shop.text, approval: .pending, lastSeenAt: .epoch)
        endpoint.routes = routes
        return endpoint
    }

    @Test func `advertised routes need approval; USB and configured routes are approved`() throws {
        #expect(ApprovalPolicy.decision(on: Self.network(), nil) == .pending)
        #expect(ApprovalPolicy.decision(on: Self.usb(), nil) == .approved)
        #expect(ApprovalPolicy.decision(on: Self.network(machine: nil), nil) == .approved)

        let advert = Self.endpoint(Self.network())
        let refusal = try #require(ApprovalPolicy.refusal(of: advert, .none))
        #expect(refusal.hint == "patchbay approve shop-iphone --address 192.168.1.20")
        #expect(refusal.detail.contains("192.168.1.20:49213"))
        #expect(!refusal.detail.contains(refusal.hint), "the command is printed once, as the hint")
        #expect(ApprovalPolicy.refusal(of: Self.endpoint(Self.usb(), Self.network()), .none) == nil)
    }

    @Test func `a USB route does not approve the advertised routes of the same endpoint`() throws {
        let both = Self.endpoint(Self.usb(), Self.network())
        #expect(ApprovalPolicy.approvedRoutes(of: both, nil) == [Self.usb()])
    }

    @Test func `an approval covers one app on one machine at one address`() async throws {
        let store = try Fixture.store(in: scratch)
        let real = Self.endpoint(Self.network())
        let approval = try await store.approvals.approve(real)
        #expect(ApprovalPolicy.decision(on: Self.network(), approval) == .approved)
        // Port and launch change whenever the app restarts.
        #expect(ApprovalPolicy.decision(on: Self.network(port: 5_000, boot: "2"), approval) == .approved)

        let fakes = [
            Self.network("192.168.1.66"), Self.network(machine: "evil.local"), Self.network(interface: "eth9"),
            Self.network(app: SanitizedText("com.example.bank")), Self.network(port: 22),
        ]
        for fake in fakes {
            guard case .changed = ApprovalPolicy.decision(on: fake, approval) else {
                Issue.record("\(fake) is dialled")
                continue
            }
            #expect(ApprovalPolicy.refusal(of: Self.endpoint(fake), EndpointTrust(approval: approval)) != nil)
        }
        // An address that an attacker adds to the endpoint is not approved, and the real one stays approved.
        let joined = Self.endpoint(Self.network(), Self.network("192.168.1.66"))
        #expect(ApprovalPolicy.approvedRoutes(of: joined, approval) == [Self.network()])
        #expect(ApprovalPolicy.approval(of: joined, EndpointTrust(approval: approval)) == .approved)
    }

    @Test func `an approval requires a current address, and a named port below 1024`() async throws {
        let store = try Fixture.store(in: scratch)
        let endpoint = Self.endpoint(Self.network("192.168.1.20", port: 80), Self.network("192.168.1.21"))
        await #expect(throws: AccessError.self) { try await store.approvals.approve(endpoint) }
        await #expect(throws: AccessError.self) { try await store.approvals.approve(endpoint, at: "192.168.1.99") }
        let second = try await store.approvals.approve(endpoint, at: "192.168.1.21")
        #expect(second.addresses.map(\.address) == ["192.168.1.21"])
        let both = try await store.approvals.approve(endpoint, at: "192.168.1.20", port: 80)
        #expect(both.addresses.map(\.address) == ["192.168.1.21", "192.168.1.20"])
        #expect(ApprovalPolicy.approvedRoutes(of: endpoint, both).count == 2)
        await #expect(throws: AccessError.self) { try await store.approvals.approve(Self.endpoint(Self.usb())) }
    }

    @Test func `a denied address is remembered, does not ask, and is not dialled until it is approved`() async throws {
        let clock = TestClock()
        var store = try Fixture.store(in: scratch, clock: clock)
        let (first, second, later) = (Self.network(), Self.network("192.168.1.21"), Self.network("192.168.1.22"))
        let endpoint = Self.endpoint(first, second)
        try await store.approvals.deny(endpoint)
        try await store.close()
        store = try Fixture.store(in: scratch, clock: clock)

        var trust = store.approvals.trust(of: endpoint.id)
        func decision(_ route: EndpointRoute) -> ApprovalPolicy.Decision {
            ApprovalPolicy.decision(on: route, trust.approval, denial: trust.denial)
        }
        #expect([first, second, later].map(decision) == [.denied, .denied, .pending])
        #expect(decision(Self.network(machine: "renamed.local", interface: "eth0", boot: "2")) == .denied)
        #expect(ApprovalPolicy.approval(of: endpoint, trust) == .denied)
        #expect(ApprovalPolicy.approval(of: Self.endpoint(first, later), trust) == .pending, "a new address asks")
        #expect(ApprovalPolicy.approvedRoutes(of: endpoint, trust.approval).isEmpty)
        #expect(ApprovalPolicy.refusal(of: endpoint, trust)?.detail.contains("denied") == true)
        #expect(await store.namedEndpoints.contains(endpoint.id), "no other app gets the ID")

        try await store.approvals.approve(endpoint, at: "192.168.1.20")
        trust = store.approvals.trust(of: endpoint.id)
        #expect([first, second].map(decision) == [.approved, .denied])
        try await store.approvals.approve(endpoint, at: "192.168.1.21")
        #expect(store.approvals.trust(of: endpoint.id).denial == nil)
        #expect(try Fixture.audit(in: scratch).map(\.event.action).contains(.endpointDenied))
    }

    @Test func `denying an approved address revokes its approval and deletes the secret; another address does not`()
        async throws
    {
        let store = try Fixture.store(in: scratch)
        let endpoint = Self.endpoint(Self.network(), Self.network("192.168.1.21"))
        try await store.approvals.approve(endpoint, at: "192.168.1.20")
        try await store.secrets.set(EndpointSecret("abc"), of: endpoint)
        try await store.approvals.deny(endpoint)
        #expect(store.approvals.trust(of: endpoint.id).approval != nil)
        #expect(store.secrets.isUsable(for: endpoint))

        try await store.approvals.deny(endpoint, at: "192.168.1.20")
        let trust = store.approvals.trust(of: endpoint.id)
        #expect(!trust.isTrusted)
        #expect(trust.denial?.addresses == ["192.168.1.21", "192.168.1.20"])
        await #expect(throws: AccessError.self) { try await store.approvals.deny(endpoint, at: "192.168.1.99") }
        await #expect(throws: AccessError.self) { try await store.approvals.deny(Self.endpoint(Self.usb())) }
    }

    @Test func `a denial outlives an unapproval, and ends when the endpoint is removed`() async throws {
        let store = try Fixture.store(in: scratch)
        let endpoint = Self.endpoint(Self.network())
        try await store.approvals.deny(endpoint)
        try await store.approvals.revoke(of: endpoint.id, by: Fixture.owner, from: Fixture.socket)
        #expect(store.approvals.trust(of: endpoint.id).denial != nil)
        try await store.approvals.revoke(of: endpoint.id, isRemoved: true, by: Fixture.owner, from: Fixture.socket)
        #expect(store.approvals.trust(of: endpoint.id) == .none)
    }

    @Test func `a database without denials gets their table`() async throws {
        let clock = TestClock()
        let endpoint = Self.endpoint(Self.network())
        var store = try Fixture.store(in: scratch, clock: clock)
        try await store.approvals.approve(endpoint)
        try await store.close()
        let file = try SQLite(opening: scratch.file(AccessDatabase.name))
        try file.execute("DROP TABLE denials; PRAGMA user_version = 0;")
        try file.close()

        store = try Fixture.store(in: scratch, clock: clock)
        #expect(await store.findings.isEmpty)
        #expect(store.approvals.trust(of: endpoint.id).approval != nil)
        try await store.approvals.deny(endpoint, at: "192.168.1.20")
        #expect(await store.approvals.denials.map(\.endpoint) == [endpoint.id])
    }

    @Test func `a secret is sent only over its route and to its launch`() async throws {
        let clock = TestClock()
        var store = try Fixture.store(in: scratch, clock: clock)
        let secret = try EndpointSecret("f00dfeed" + String(repeating: "5", count: 56))
        let real = Self.endpoint(Self.network())
        await #expect(throws: AccessError.self) { try await store.secrets.set(secret, of: real) }
        try await store.approvals.approve(real)
        try await store.secrets.set(secret, of: real)
        try await store.close()
        store = try Fixture.store(in: scratch, clock: clock)

        #expect(try store.secrets.secret(of: real, over: Self.network())?.reveal() == secret.reveal())
        let others = [
            Self.network("192.168.1.66"), Self.network(machine: "evil.local"), Self.network(boot: "2"),
            Self.network(boot: nil),
            // The USB route of the same launch has no secret, because none was set for it.
            Self.usb(),
        ]
        for other in others {
            let endpoint = Self.endpoint(other)
            #expect(throws: AccessError.self) { try store.secrets.secret(of: endpoint, over: other) }
        }
        // A route that the endpoint does not have is rejected.
        #expect(throws: AccessError.self) { try store.secrets.secret(of: real, over: Self.usb()) }
        // A new approval has no secret.
        let moved = Self.endpoint(Self.network(machine: "evil.local"))
        try await store.approvals.approve(moved)
        #expect(try store.secrets.secret(of: moved, over: moved.routes[0]) == nil)
    }

    @Test func `approving an address neither extends nor deletes the secret of the USB route`()
        async throws
    {
        let store = try Fixture.store(in: scratch)
        let both = Self.endpoint(Self.usb(), Self.network())
        try await store.secrets.set(EndpointSecret("abc"), of: both)
        try await store.approvals.approve(both)

        #expect(try store.secrets.secret(of: both, over: Self.usb())?.reveal() == "abc")
        #expect(throws: AccessError.self) { try store.secrets.secret(of: both, over: Self.network()) }
        let routes = store.secrets.access(to: both).routes
        #expect(routes.map { $0.secret != nil } == [true, false])
    }

    @Test func `a rejected secret does not count as held until it is accepted or replaced`()
        async throws
    {
        let store = try Fixture.store(in: scratch)
        let endpoint = Self.endpoint(Self.usb())
        try await store.secrets.set(EndpointSecret("abc"), of: endpoint)

        store.secrets.recordResult(for: endpoint, accepted: false)
        #expect(!store.secrets.isUsable(for: endpoint))
        // The rejected secret is still sent, because the app may have been shutting down.
        #expect(try store.secrets.secret(of: endpoint, over: endpoint.routes[0])?.reveal() == "abc")
        store.secrets.recordResult(for: endpoint, accepted: true)
        #expect(store.secrets.isUsable(for: endpoint))

        store.secrets.recordResult(for: endpoint, accepted: false)
        try await store.secrets.set(EndpointSecret("def"), of: endpoint)
        #expect(store.secrets.isUsable(for: endpoint))
    }

    @Test func `a secret for an unseen launch binds to the first launch that accepts it on its route`() async throws {
        let store = try Fixture.store(in: scratch)
        let (old, new, later) = (Self.network(boot: "1"), Self.network(boot: "2"), Self.network(boot: "3"))
        let real = Self.endpoint(old)
        try await store.approvals.approve(real)
        func saveSecret() async throws {
            try await store.secrets.set(EndpointSecret("abc"), of: real, isForUnseen: true)
        }
        func sent(_ routes: EndpointRoute...) async throws -> [Bool] {
            var sent: [Bool] = []
            for route in routes {
                let endpoint = Self.endpoint(route)
                sent.append((try? store.secrets.secret(of: endpoint, over: route)) != nil)
            }
            return sent
        }
        try await saveSecret()
        #expect(try await sent(old, new) == [true, true])
        let others = try await sent(
            Self.usb(),
            Self.network("192.168.1.66", boot: "2"),
            Self.network(machine: "evil.local", boot: "2")
        )
        #expect(others == [false, false, false])

        // The launch that existed before rejects the secret while shutting down.
        try await store.secrets.confirm(of: real, accepted: false)
        #expect(try await sent(new) == [true])
        try await store.secrets.confirm(of: Self.endpoint(new), accepted: true)
        #expect(try await sent(old, new, later) == [false, true, false])
        #expect(store.secrets.access(to: Self.endpoint(new)).routes.first?.secret?.reveal() == "abc")

        try await saveSecret()
        try await store.secrets.confirm(of: Self.endpoint(new), accepted: false)
        #expect(try await sent(old, new, later) == [true, false, false])
    }

    @Test func `a secret set while the app is unavailable applies to its next launch at an approved address`()
        async throws
    {
        let store = try Fixture.store(in: scratch)
        try await store.approvals.approve(Self.endpoint(Self.network()))
        let away = Self.endpoint()
        func saveSecret(on port: UInt16?) async throws {
            try await store.secrets.set(
                EndpointSecret("abc"),
                of: away,
                on: port,
                isForUnseen: port == nil,
                by: Fixture.owner,
                from: Fixture.socket
            )
        }
        func isSent(_ route: EndpointRoute) async throws -> Bool {
            (try? store.secrets.secret(of: Self.endpoint(route), over: route)) != nil
        }
        try await saveSecret(on: Self.network().port)
        #expect(try await isSent(Self.network(boot: nil)))
        #expect(try await !isSent(Self.network(boot: "1")))
        #expect(try await !isSent(Self.network("192.168.1.66", boot: nil)))
        #expect(try await !isSent(Self.network(machine: "evil.local", boot: nil)))
        try await saveSecret(on: Self.network().port + 1)
        #expect(try await !isSent(Self.network(boot: nil)))

        // A bare token names no port, so it belongs to the first launch that accepts it.
        try await saveSecret(on: nil)
        #expect(try await isSent(Self.network(boot: "1")))
        #expect(try await !isSent(Self.network("192.168.1.66")))
        try await store.secrets.confirm(of: Self.endpoint(Self.network(boot: "1")), accepted: true)
        #expect(try await isSent(Self.network(boot: "1")))
        #expect(try await !isSent(Self.network(boot: "2")))

        try await store.approvals.revoke(of: away.id, by: Fixture.owner, from: Fixture.socket)
        await #expect(throws: AccessError.self) { try await saveSecret(on: nil) }
    }

    @Test func `a USB app's secret needs no approval, and is deleted on request`() async throws {
        let store = try Fixture.store(in: scratch)
        let endpoint = Self.endpoint(Self.usb())
        try await store.secrets.set(EndpointSecret("abc"), of: endpoint)
        #expect(store.approvals.trust(of: endpoint.id).approval == nil)
        #expect(store.secrets.isUsable(for: endpoint))

        try await store.secrets.delete(of: endpoint.id, by: Fixture.owner, from: Fixture.socket)
        #expect(try store.secrets.secret(of: endpoint, over: endpoint.routes[0]) == nil)
    }

    @Test(arguments: ["", "a b", "a\r\nX: y", "ä", String(repeating: "a", count: 4_097)])
    func `a secret that is not a valid header value is rejected`(text: String) {
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

    @Test func `a sealed secret does not open after a changed byte or with another context`() throws {
        let keys = DerivedKeys(.init(size: .bits256))
        let id: EndpointID = "shop"
        func record(_ sealed: Data, _ endpoint: EndpointID = id, origin: String = "a", launch: String = "1")
            -> SecretRecord
        { SecretRecord(endpoint: endpoint, bindings: [.init(origin: origin, launch: launch)], sealed: sealed) }
        let sealed = try keys.seal(EndpointSecret("hunter2"), context: record(Data()).context)
        #expect(try keys.open(record(sealed)).reveal() == "hunter2")
        for index in sealed.indices {
            var flipped = sealed
            flipped[index] ^= 1
            #expect(throws: (any Error).self) { try keys.open(record(flipped)) }
        }
        let other: EndpointID = "bank"
        for wrong in [record(sealed, other), record(sealed, origin: "b"), record(sealed, launch: "2")] {
            #expect(throws: (any Error).self) { try keys.open(wrong) }
        }
    }

    @Test func `the later of an approval and a revocation in one commit applies`() throws {
        let real = Self.endpoint(Self.network())
        let approval = Approval(
            id: "yes",
            endpoint: real.id,
            approvedBy: Fixture.owner,
            approvedAt: Date(),
            app: Self.shop,
            machine: SanitizedText("iphone.local"),
            addresses: []
        )
        var (approving, revoking) = (ChangeSet(), ChangeSet())
        approving.approvals = [approval]
        revoking.removedApprovals = [real.id]

        for (changes, approved) in [([revoking, approving], true), ([approving, revoking], false)] {
            var state = AccessState()
            state.apply(changes[0] + changes[1])
            #expect((state.approvals[real.id] == approval) == approved)
        }
    }
}

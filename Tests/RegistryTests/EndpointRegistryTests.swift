import FoundationEssentials
import Model
import Samples
import Testing

@testable import Registry

@Suite struct EndpointRegistryTests {
    @Test func `a subscriber gets the list first, then every change in order`() async throws {
        let registry = EndpointRegistry()
        await registry.apply(.seen(Seen.network()))

        let (start, changes) = await registry.changes(after: nil)
        await registry.apply(.seen(Seen.network("com.example.mail")))
        await registry.apply(.lost(Seen.network().id))
        await registry.finish()

        guard case .snapshot(let endpoints, let revision) = start else {
            Issue.record("a first follower gets a snapshot, not \(start)")
            return
        }
        #expect(endpoints.map(\.id.text) == ["shop-iphone"])
        #expect(revision == 1)
        let seen = await changes.reduce(into: []) { $0.append($1) }
        #expect(seen.map(\.revision) == [2, 3])
        #expect(seen.map(\.kind) == [.added, .changed])
    }

    @Test func `only an approved address is linked to the phone with the same launch, as long as both have it`()
        async throws
    {
        let phone = UDID.sample
        let cable = Seen.usb("com.example.shop", udid: phone, launchID: "b1")
        for isApproved in [false, true] {
            let registry = EndpointRegistry()
            await registry.apply(.seen(Seen.network(launchID: "b1")))
            let wireless = try #require(await registry.endpoints.first)
            if isApproved { await registry.setTrust(.approving(wireless), of: wireless.id) }
            await registry.apply(.seen(cable))
            #expect(registry.linkedPhones.all == (isApproved ? [wireless.id: phone] : [:]))

            await registry.apply(.seen(Seen.network(launchID: "b2")))
            #expect(registry.linkedPhones.all.isEmpty)
            // Another address announces the launch of the phone under the approved name.
            await registry.apply(.seen(Seen.network(address: "10.0.0.66", launchID: "b1")))
            #expect(registry.linkedPhones.all.isEmpty)
        }
    }

    @Test func `a resuming subscriber gets exactly the changes that it missed`() async {
        let registry = EndpointRegistry()
        for number in 1...20 { await registry.apply(.seen(Seen.network("com.example.n\(number)"))) }

        let (start, _) = await registry.changes(after: 15)

        guard case .replay(let missed) = start else {
            Issue.record("revision 15 is still kept")
            return
        }
        #expect(missed.map(\.revision) == [16, 17, 18, 19, 20])
    }

    @Test(arguments: [0, 3, 999_999] as [UInt64])
    func `a subscriber with an unknown revision gets a new list`(revision: UInt64) async {
        let registry = EndpointRegistry(startingAfter: 5)
        await registry.apply(.seen(Seen.network()))

        let (start, _) = await registry.changes(after: revision)

        guard case .snapshot(let endpoints, 6) = start else {
            Issue.record("revision \(revision) cannot be replayed: \(start)")
            return
        }
        #expect(endpoints.count == 1)
    }

    @Test func `a subscriber that ends is removed at once, even without a change`() async {
        let registry = EndpointRegistry()
        for _ in 0..<100 { _ = await registry.changes() }

        #expect(await registry.subscriberCount == 0)
    }

    @Test func `the stream of a slow subscriber ends, and the others continue`() async {
        let registry = EndpointRegistry()
        let (_, slow) = await registry.changes()
        for number in 0...ChangeLog.capacity {
            await registry.apply(.seen(Seen.network(port: UInt16(1_000 + number))))
        }

        let seen = await slow.reduce(into: []) { $0.append($1.revision) }

        #expect(seen.count == ChangeLog.capacity)
        #expect(seen == Array(1...UInt64(ChangeLog.capacity)))
    }

    @Test func `an approval and its revocation are changes with a revision`() async throws {
        let registry = EndpointRegistry()
        await registry.apply(.seen(Seen.network()))
        let endpoint = try #require(await registry.endpoints.first)
        let trust = EndpointTrust.approving(endpoint)
        let (_, changes) = await registry.changes()

        await registry.setTrust(trust, of: endpoint.id)
        await registry.setTrust(trust, of: endpoint.id)
        await registry.setTrust(.none, of: endpoint.id)
        await registry.finish()

        let seen = await changes.reduce(into: []) { $0.append($1) }
        #expect(seen.map(\.revision) == [2, 3])
        #expect(seen.map(\.endpoint.approval) == [.approved, .pending])
    }

    @Test func `an unknown endpoint is an error that names it`() async {
        let registry = EndpointRegistry()
        let id = EndpointID(app: SanitizedText("ghost"), location: "")

        await #expect(throws: RegistryError.noSuchEndpoint("ghost")) { try await registry.endpoint(id) }
    }
}

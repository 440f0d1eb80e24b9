import FoundationEssentials
import Model
import Testing

@testable import Registry

@Suite struct EndpointRegistryTests {
    @Test func `a follower gets the list first, then every change in order`() async throws {
        let registry = EndpointRegistry()
        await registry.apply(.seen(Seen.lan()))

        let (start, changes) = await registry.changes()
        await registry.apply(.seen(Seen.lan("com.example.mail")))
        await registry.apply(.lost(Seen.lan().id))
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

    @Test func `a follower that comes back gets exactly what it missed`() async {
        let registry = EndpointRegistry()
        for number in 1...20 { await registry.apply(.seen(Seen.lan("com.example.n\(number)"))) }

        let (start, _) = await registry.changes(after: 15)

        guard case .replay(let missed) = start else {
            Issue.record("revision 15 is still kept")
            return
        }
        #expect(missed.map(\.revision) == [16, 17, 18, 19, 20])
    }

    @Test(arguments: [0, 3, 999_999] as [UInt64])
    func `a follower whose revision is not kept gets the list anew`(revision: UInt64) async {
        let registry = EndpointRegistry(startingAfter: 5)
        await registry.apply(.seen(Seen.lan()))

        let (start, _) = await registry.changes(after: revision)

        guard case .snapshot(let endpoints, 6) = start else {
            Issue.record("revision \(revision) cannot be replayed: \(start)")
            return
        }
        #expect(endpoints.count == 1)
    }

    @Test func `a follower that leaves is forgotten at once, also where no change comes`() async {
        let registry = EndpointRegistry()
        for _ in 0..<100 { _ = await registry.changes() }

        #expect(await registry.followerCount == 0)
    }

    @Test func `a follower that does not keep up is let go and the others are not`() async {
        let registry = EndpointRegistry()
        let (_, slow) = await registry.changes()
        for number in 0...ChangeLog.capacity {
            await registry.apply(.seen(Seen.lan(port: UInt16(1_000 + number))))
        }

        let seen = await slow.reduce(into: []) { $0.append($1.revision) }

        #expect(seen.count == ChangeLog.capacity)
        #expect(seen == Array(1...UInt64(ChangeLog.capacity)))
    }

    @Test func `an approval and its revocation are revisions that a subscriber gets`() async throws {
        let registry = EndpointRegistry()
        await registry.apply(.seen(Seen.lan()))
        let endpoint = try #require(await registry.endpoints.first)
        let trust = EndpointTrust.approving(endpoint)
        let (_, changes) = await registry.changes()

        await registry.setTrust(trust, of: endpoint.id)
        await registry.setTrust(trust, of: endpoint.id)
        await registry.setTrust(.none, of: endpoint.id)
        await registry.finish()

        let seen = await changes.reduce(into: []) { $0.append($1) }
        #expect(seen.map(\.revision) == [2, 3])
        #expect(seen.map(\.endpoint.approval) == [.approved, .discovered])
    }

    @Test func `asking for an endpoint that is not there says so by name`() async {
        let registry = EndpointRegistry()
        let id = EndpointID(app: SanitizedText("ghost"), place: "")

        await #expect(throws: RegistryError.noSuchEndpoint("ghost")) { try await registry.endpoint(id) }
    }
}

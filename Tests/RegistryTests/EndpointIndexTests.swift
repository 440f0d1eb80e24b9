import FoundationEssentials
import Model
import Testing

@testable import Registry

@Suite struct EndpointIndexTests {
    private let mac = Seen.network(machine: "mac.local")
    private var server: ServerKey { ServerKey(of: mac) }

    @Test func `a new endpoint is found by server, identity key and address until it is removed`() throws {
        var index = EndpointIndex()
        let id = index.add(for: mac, on: server, at: now)
        let key = try #require(IdentityKey.candidates(for: mac).first)
        let address = ClaimedAddress(address: "192.168.1.20", interface: "eth0")

        #expect(index.id(of: server) == id)
        #expect(index.ids(with: key) == [id] && index.ids(at: address) == [id])
        #expect(index.advertised == [id] && index.unseen.isEmpty)

        index.remove(id)
        #expect(index.id(of: server) == nil && index[id] == nil)
        #expect(index.ids(with: key).isEmpty && index.ids(at: address).isEmpty)
        #expect(index.advertised.isEmpty && index.count == 0)
    }

    @Test func `an endpoint without a server is unseen`() {
        var index = EndpointIndex()
        let id = index.add(for: mac, on: server, at: now)

        index.unassign(server)
        #expect(index.unseen == [id] && index[id]?.isUnseen == true)

        index.assign(server, to: id)
        #expect(index.unseen.isEmpty)
    }

    @Test func `an ID in use, a former ID and another app's retired ID are not assigned again`() {
        var index = EndpointIndex()
        let other = Seen.network("org.other.shop", machine: "mac.local", port: 5_000)
        let first = index.add(for: mac, on: server, at: now)
        let second = index.add(for: other, on: ServerKey(of: other), at: now)
        #expect([first, second].map(\.text) == ["shop-mac", "shop-mac-2"])

        index.retire(first)
        index.retire(second)
        #expect(index.add(for: other, on: ServerKey(of: other), at: now) == second)

        let tablet = Seen.network("com.example.shop", machine: "tablet.local")
        let former = EndpointID(app: SanitizedText("shop"), location: "tablet")
        index.addAliases([former], to: second)
        #expect(index.entry(everCalled: former)?.record.endpoint.id == second)
        #expect(index.add(for: tablet, on: ServerKey(of: tablet), at: now).text == "shop-tablet-2")

        index.retire(second)
        #expect(!index.retired.isFree(former, for: IdentityKey.candidates(for: tablet)))
        #expect(index.retired.isFree(former, for: IdentityKey.candidates(for: other)))
    }

    @Test func `the ID of a merged endpoint is an alias until the same app is listed separately again`() {
        var index = EndpointIndex()
        let other = Seen.network("org.other.shop", machine: "mac.local", port: 5_000)
        let first = index.add(for: mac, on: server, at: now)
        let second = index.add(for: other, on: ServerKey(of: other), at: now)

        index.merge(first, into: second)
        #expect(index.entry(everCalled: first)?.record.endpoint.id == second)
        #expect(index[second]?.record.endpoint.formerIDs == [first])

        #expect(index.add(for: mac, on: server, at: now) == first)
        #expect(index.entry(everCalled: first)?.record.endpoint.id == first)
        #expect(index[second]?.record.endpoint.formerIDs == nil)
    }

    @Test func `another source does not add identity keys`() {
        var index = EndpointIndex()
        let id = index.add(for: mac, on: server, at: now)

        index.recordIdentity(Seen.config("mac"), for: id)

        #expect(index[id]?.record.keys == IdentityKey.candidates(for: mac))
    }

    @Test func `the oldest retired IDs become free above the limit, except those that something names`() throws {
        var retired = RetiredIDs()
        let ids = (0...RetiredIDs.limit + 1).compactMap { EndpointID("e\($0)") }
        let keys = IdentityKey.candidates(for: mac)
        for id in ids { retired.add(id, for: keys) }
        #expect(retired.isOverLimit)
        retired.free(except: [ids[0]])

        #expect(!retired.isOverLimit && !retired.isFree(ids[0], for: []) && retired.isFree(ids[0], for: keys))
        #expect(retired.isFree(ids[1], for: []) && retired.isFree(ids[2], for: []))
        #expect(!retired.isFree(ids[3], for: []) && retired.isFree(ids[3], for: keys))
        retired.remove(ids[3])
        #expect(retired.isFree(ids[3], for: []))
    }

    @Test func `named IDs stay reserved above the limit`() throws {
        var retired = RetiredIDs()
        let ids = (0...RetiredIDs.limit).compactMap { EndpointID("e\($0)") }
        for id in ids { retired.add(id, for: []) }
        retired.free(except: Set(ids))
        #expect(ids.allSatisfy { retired.contains($0) })
    }
}

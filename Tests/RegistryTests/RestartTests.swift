import FoundationEssentials
import Model
import Testing

@testable import Registry

/// The assignment of IDs in the first seconds after a restart, when advertisements arrive in any order.
@Suite struct RestartTests {
    private let real = Seen.network(port: 8_123, name: "desk")
    private let lookalike = Seen.network(port: 9_006, name: "desk-evil")

    /// A table of an earlier run with the real app approved, after a restart.
    private func restarted() throws -> (table: EndpointTable, id: EndpointID) {
        let before = EndpointTable(real)
        let endpoint = try #require(before.endpoints.first)
        let trust = EndpointTrust.approving(endpoint)
        return (EndpointTable(records: before.records, trusts: [endpoint.id: trust]), endpoint.id)
    }

    private func ports(_ id: EndpointID, _ table: EndpointTable) -> [UInt16]? { table[id]?.routes.map(\.port) }

    @Test(arguments: [true, false])
    func `an app keeps its ID beside a lookalike on its machine, in any order`(isLookalikeFirst: Bool) throws {
        var (table, id) = try restarted()
        table.see(isLookalikeFirst ? [lookalike, real] : [real, lookalike])
        _ = table.apply(.sourceReconciled(.bonjour), at: now)

        #expect(ports(id, table) == [8_123] && table[id]?.approval == .approved)
        let other = try #require(table.endpoint(seenAs: lookalike.id))
        #expect(other.id != id && other.approval == .pending && table.endpoints.count == 2)
    }

    @Test(arguments: [true, false])
    func `an app that moved meanwhile keeps its ID by its name`(isLookalikeFirst: Bool) throws {
        var (table, id) = try restarted()
        let moved = Seen.network(port: 8_200, name: "desk")
        table.see(isLookalikeFirst ? [lookalike, moved] : [moved, lookalike])
        #expect(ports(id, table) == [8_200])
    }

    @Test func `after the first report of the source, no advertisement takes an ID in use`() throws {
        var (table, id) = try restarted()
        let moved = Seen.network(port: 8_200, name: "desk two")
        table.see(moved)
        _ = table.apply(.sourceReconciled(.bonjour), at: now)
        table.see(Seen.network(port: 8_123, name: "desk"))

        #expect(ports(id, table) == [8_200])
    }

    @Test func `two apps of one name on one machine get their own IDs back in any order`() throws {
        let second = Seen.network(port: 8_124, name: "desk two")
        let before = EndpointTable(real, second)
        let ids = [real, second].map { before.endpoint(seenAs: $0.id)?.id }

        var table = EndpointTable(records: before.records)
        table.see([second, real])
        #expect([real, second].map { table.endpoint(seenAs: $0.id)?.id } == ids)
    }
}

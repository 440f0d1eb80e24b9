import Glibc
import Model
import Samples
import SystemIO
import Testing

@testable import Tunnels

/// The IDs, the local addresses and the saved content of tunnels, without a running table.
struct TunnelIndexTests {
    private struct NoRoutes: RouteResolver {
        func resolve(_ target: TunnelTarget) async throws(DialError) -> ResolvedTarget { ResolvedTarget([]) }
    }

    private let fixture = TunnelTableFixture()
    private let dependencies = TunnelDependencies(
        planner: RoutePlanner(resolver: NoRoutes(), planner: NetworkPlanner()),
        relay: Relay(),
        ownerCheck: ClientOwnerCheck(logger: .quiet),
        policy: nil,
        connectionLimit: TunnelConnectionLimiter(limit: 1),
        limits: TunnelLimits(),
        clock: PollerClock(),
        logger: .quiet
    )

    private func plan(
        _ specs: TunnelSpec...,
        in records: TunnelIndex,
        isEphemeral: Bool = false
    ) throws(TunnelError) -> [TunnelPlan] {
        try records.plan(specs, owner: geteuid(), isEphemeral: isEphemeral, limit: 4)
    }

    private func insert(_ plans: [TunnelPlan], into records: inout TunnelIndex) -> [String] {
        plans.map { records.insert($0, listeners: $0.listeners, dependencies: dependencies).id }
    }

    private func freeAddress() throws -> ListenAddress {
        .tcp(host: "127.0.0.1", port: try Listener(on: .ipv4(INADDR_LOOPBACK, port: 0)).address.port ?? 0)
    }

    @Test func `an ID is never reused, also after a restart`() async throws {
        var records = TunnelIndex()
        #expect(insert(try plan(fixture.spec(), fixture.spec(), in: records), into: &records) == ["t1", "t2"])
        #expect(records.remove(["t2", "t9"]).map(\.id) == ["t2"])

        var restored = TunnelIndex(records.persisted(), dependencies: dependencies)

        #expect(restored.inOrder.map(\.id) == ["t1"])
        #expect(insert(try plan(fixture.spec(), in: restored), into: &restored) == ["t3"])
        await dependencies.relay.stop()
    }

    @Test func `an ID of the state file is never reused, even if the next number is wrong`() async throws {
        var records = TunnelIndex()
        _ = insert(try plan(fixture.spec(), fixture.spec(), in: records), into: &records)
        var persisted = records.persisted()
        persisted.next = 1

        var restored = TunnelIndex(persisted, dependencies: dependencies)

        #expect(insert(try plan(fixture.spec(), in: restored), into: &restored) == ["t3"])
        await dependencies.relay.stop()
    }

    @Test func `a tunnel owns its address also while it does not listen`() async throws {
        let local = try freeAddress()
        var records = TunnelIndex()
        _ = records.insert(try plan(fixture.spec(local), in: records)[0], listeners: [], dependencies: dependencies)

        #expect(throws: TunnelError.taken(local, by: "t1", leadsThere: true)) {
            try plan(fixture.spec(local, noRebind: true), in: records)
        }
        #expect(throws: TunnelError.taken(local, by: "t1", leadsThere: true)) {
            try plan(fixture.spec(local), in: records, isEphemeral: true)
        }
        let replacement = try plan(fixture.spec(local), in: records)[0]
        #expect(replacement.old?.id == "t1" && !replacement.isUnchanged)
        #expect(replacement.listeners.count == 1)
        await dependencies.relay.stop()
    }

    @Test func `two planned tunnels cannot replace the same one`() async throws {
        let local = try freeAddress()
        var records = TunnelIndex()
        _ = insert(try plan(fixture.spec(local), in: records), into: &records)

        #expect(throws: TunnelError.inUse(local)) {
            try plan(fixture.spec(local, port: 2), fixture.spec(local, port: 3), in: records)
        }
        #expect(try plan(fixture.spec(local), in: records)[0].isUnchanged)
        await dependencies.relay.stop()
    }

    @Test func `the state file has the planned and the remaining tunnels, and no ephemeral one`() async throws {
        var records = TunnelIndex()
        _ = insert(try plan(fixture.spec(), fixture.spec(), in: records), into: &records)
        _ = insert(try plan(fixture.spec(), in: records, isEphemeral: true), into: &records)
        let new = try plan(fixture.spec(), in: records)

        let persisted = records.persisted(removing: ["t1"], inserting: new)

        #expect(persisted.tunnels.map(\.id) == ["t2", "t4"] && persisted.next == 5)
        #expect(persisted.tunnels.allSatisfy { ($0.port ?? 0) > 0 })
        #expect(records.persisted(removing: ["t1"]).next == 4)
        await dependencies.relay.stop()
    }

    @Test func `no plan exceeds the limit or leads to port 0`() async throws {
        let records = TunnelIndex()
        let spec = fixture.spec()

        #expect(throws: TunnelError.tooMany(limit: 4)) { try plan(spec, spec, spec, spec, spec, in: records) }
        #expect(throws: TunnelError.self) { try plan(fixture.spec(port: 0), in: records) }
        await dependencies.relay.stop()
    }
}

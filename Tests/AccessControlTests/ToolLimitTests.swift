import FoundationEssentials
import Model
import TestSupport
import Testing

@testable import AccessControl

/// Limits of grants to certain tools.
@Suite(.scratchFolder) struct ToolLimitTests {
    private let scratch = ScratchFolder.current
    private static let readOnly = Permissions([.registryRead, .endpointCall], on: .all, tools: .readOnly)

    /// Returns body and MAC of each row of the grants.
    private static func rows(in scratch: ScratchFolder) throws -> [[SQLiteValue]] {
        let file = try SQLite(opening: scratch.file(AccessDatabase.name))
        defer { try? file.close() }
        return try file.run("SELECT body, mac FROM grants ORDER BY id")
    }

    private static func bodies(in scratch: ScratchFolder) throws -> [String] {
        try rows(in: scratch).compactMap { $0[0].blob.map { String(decoding: $0, as: UTF8.self) } }
    }

    @Test func `a stored grant without a tool filter allows all tools, and its row does not change`() async throws {
        let first = try Fixture.store(in: scratch)
        let (_, token) = try await first.grant()
        try await first.close()
        let before = try Self.rows(in: scratch)
        #expect(try Self.bodies(in: scratch).allSatisfy { !$0.contains(#""tools""#) })

        let second = try Fixture.store(in: scratch)
        let grant = try await second.grants.authenticate(token)
        #expect(grant.permissions.tools == .all && grant.permissions == Fixture.reader)
        #expect(await second.findings.isEmpty)
        try await second.close()

        let third = try Fixture.store(in: scratch)
        try await third.close()
        #expect(before.count == 1)
        #expect(try Self.bodies(in: scratch).allSatisfy { !$0.contains(#""tools""#) })
        let record = try #require(before.first?.first?.blob)
        let decoded = try JSONCoding.decoder().decode(GrantRecord.self, from: record)
        #expect(try JSONCoding.encoder().encode(decoded) == record)
    }

    @Test func `a limit survives a restart, and a row without it is ignored`() async throws {
        let first = try Fixture.store(in: scratch)
        let (_, token) = try await first.grant(Self.readOnly)
        try await first.close()

        let second = try Fixture.store(in: scratch)
        let grant = try await second.grants.authenticate(token)
        #expect(grant.permissions == Self.readOnly)
        try await second.close()
        let body = try #require(try Self.bodies(in: scratch).first)
        let wider = body.replacing(#","tools":"read-only""#, with: "")
        try #require(wider != body)
        let file = try SQLite(opening: scratch.file(AccessDatabase.name))
        try file.run("UPDATE grants SET body = ?", .blob(Data(wider.utf8)))
        try file.close()

        let third = try Fixture.store(in: scratch)
        await #expect(throws: AccessError.refused) { try await third.grants.authenticate(token) }
        try await third.close()
    }

    @Test(arguments: [Scope.tunnelOpen, .shell, .secretRead, .admin], [ToolFilter.readOnly, .named(["tap"])])
    func `an invite cannot combine a limit with a scope that bypasses it, and the error explains that`(
        scope: Scope,
        tools: ToolFilter
    ) async throws {
        let store = try Fixture.store(in: scratch)
        let permissions = Permissions([.endpointCall, scope], on: .all, tools: tools)

        let invite = await #expect(throws: AccessError.self) { try await store.invites.create(InviteSpec(permissions)) }
        let request = await #expect(throws: AccessError.self) {
            try await store.requests.create(
                AccessRequestSpec(name: SanitizedText("agent"), permissions: permissions),
                by: .process(uid: 1_001, pid: 77, executable: SanitizedText("/usr/bin/agent"))
            )
        }

        for error in [invite, request] {
            #expect(
                error?.description.hasSuffix(
                    "\(scope.rawValue) would bypass the limit to \(tools), because it allows any call of an app; "
                        + "leave out the scope or the limit"
                ) == true
            )
        }
        #expect(await store.invites.list.isEmpty)
    }

    @Test(arguments: [[], [""], [String(repeating: "x", count: 257)], (0...100).map { "tool\($0)" }])
    func `a limit to named tools has 1 to 100 names of at most 256 bytes`(names: [String]) async throws {
        let store = try Fixture.store(in: scratch)
        let spec = InviteSpec(Permissions([.endpointCall], on: .all, tools: .named(Set(names))))
        let error = await #expect(throws: AccessError.self) { try await store.invites.create(spec) }
        #expect(error?.description.contains("1 to 100 names") == true)
    }

    @Test func `a redeemer may limit its tools, and cannot remove the limit of its invite`() async throws {
        let store = try Fixture.store(in: scratch)
        func redeem(_ invite: Token, _ permissions: Permissions) async throws -> Grant {
            var spec = Fixture.redemption(of: invite, as: "agent")
            spec = RedemptionSpec(token: spec.token, client: spec.client, name: spec.name, permissions: permissions)
            return try await store.invites.redeem(spec, from: Fixture.loopback).0
        }
        let wide = Permissions([.endpointCall, .tunnelOpen], on: .all)
        let (_, invite) = try await store.invites.create(InviteSpec(wide))
        await #expect(throws: AccessError.self) {
            try await redeem(invite, Permissions([.endpointCall, .tunnelOpen], on: .all, tools: .readOnly))
        }
        let narrow = Permissions([.endpointCall], on: .all, tools: .readOnly)
        #expect(try await redeem(invite, narrow).permissions == narrow)

        let spec = InviteSpec(Self.readOnly)
        let (_, limited) = try await store.invites.create(spec)
        for tools in [ToolFilter.all, .named(["tap"])] {
            await #expect(throws: AccessError.self) {
                try await redeem(limited, Permissions([.endpointCall], on: .all, tools: tools))
            }
        }
        #expect(await store.invites.list.filter { $0.id == limited.id }.map(\.useCount) == [0])
    }

    @Test func `a child invite never allows more tools than its parent`() async throws {
        let store = try Fixture.store(in: scratch)
        let scopes: Set<Scope> = [.endpointCall, .inviteCreate]
        let two = ToolFilter.named(["screenshot", "tap"])
        let (parent, _) = try await store.grant(Permissions(scopes, on: .all, tools: two))
        for tools in [ToolFilter.all, .readOnly, .named(["screenshot", "swipe"])] {
            let error = await #expect(throws: AccessError.self) {
                try await store.child(of: parent, Permissions([.endpointCall], on: .all, tools: tools))
            }
            #expect(error?.description.contains("endpoints or tools") == true)
        }
        let narrow = Permissions([.endpointCall], on: .all, tools: .named(["tap"]))
        #expect(try await store.child(of: parent, narrow).0.permissions == narrow)
    }

    @Test func `an approved access request keeps its limit, and the audit log names it`() async throws {
        let clock = TestClock()
        let store = try Fixture.store(in: scratch, clock: clock)
        let (request, code) = try await store.requests.create(
            AccessRequestSpec(name: SanitizedText("agent"), permissions: Self.readOnly),
            by: .process(uid: 1_001, pid: 77, executable: SanitizedText("/usr/bin/agent"))
        )
        #expect(request.permissions.tools == .readOnly)
        let approved = try await store.requests.approve(request.userCode)
        #expect(approved.permissions == Self.readOnly)
        clock.pass(5)
        let poll = AccessRequestPoll(deviceCode: code.reveal(), client: String(repeating: "7", count: 32))
        let state = try await store.requests.poll(poll, by: request.requester, from: .unix(uid: 1_001))
        guard case .granted(let grant, _) = state else {
            Issue.record("the request is not granted")
            return
        }
        #expect(grant.permissions == Self.readOnly)
        #expect(
            try Fixture.audit(in: scratch).contains {
                $0.event.detail?.hasSuffix("endpoint.call, registry.read with read-only tools") == true
            }
        )
    }
}

import AccessControl
import FoundationEssentials
import Model
import Registry
import Samples
import SystemIO
import TestSupport
import Testing

@testable import Team
@testable import Tunnels

/// The ways to phones of other hosts.
@Suite(.timeLimit(.minutes(1)), .scratchFolder) struct TeamPlannerTests {
    private let scratch = ScratchFolder.current

    /// A broker without phones of its own.
    private struct NoPhones: RouteResolver {
        func resolve(_ target: TunnelTarget) throws(DialError) -> ResolvedTarget {
            throw DialError(.deviceAbsent, "the phone is not attached here")
        }
    }

    private static let team = SanitizedText("lab")
    private static let date = Date(timeIntervalSince1970: 1_700_000_000)

    private let store = InMemoryTeamStore()
    private let udid = UDID("00008030-001A2B3C4D5E6F70")

    private func host(_ name: String) throws -> HostName { try #require(HostName(name)) }

    private func put(_ value: some Encodable, _ key: TeamKey) async throws {
        let bytes = try TeamCoding.bytes(of: value, for: key)
        _ = try await store.write([.put(key: key.text, value: bytes, sessionLease: nil)], if: nil)
    }

    /// Writes a team in which alpha has the phone over Wi-Fi, and beta over USB. No broker runs.
    private func createTeam() async throws {
        try await put(TeamMeta(team: Self.team), .meta)
        let key = try #require(KeyPin(String(repeating: "A", count: 52)))
        for name in ["alpha", "beta", "gamma"] {
            let member = TeamMember(name: try host(name), key: key, addedAt: Self.date)
            try await put(member, .member(member.name))
        }
        for (name, transport) in [("alpha", Device.Transport.network), ("beta", .usb)] {
            let device = Device(udid: udid, transport: transport, attachedAt: Self.date)
            try await put(device, .device(udid, transport, on: try host(name)))
        }
    }

    /// Runs the body with the planner of gamma, which knows the team.
    private func withPlanner(_ body: (TeamPlanner) async throws -> Void) async throws {
        let members = try await TeamMembers(in: scratch.path, logger: .quiet)
        let watcher = TeamWatcher(
            host: try host("gamma"),
            team: Self.team,
            store: store,
            members: members,
            logger: .quiet
        )
        let brokers = HostBrokers(
            members: members,
            watcher: watcher,
            client: HostClient(addressRefusal: { _ in nil }) { _ in NoSecurity() }
        )
        let planner = TeamPlanner(
            local: RoutePlanner(resolver: NoPhones(), planner: FakeDialer.silent()),
            endpoints: EndpointRegistry(),
            brokers: { brokers },
            callers: CallerDirectory(accessStore: try AccessStore(in: scratch.path, logger: .quiet))
        )
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await watcher.run() }
            for await event in watcher.events where event == .stale(since: nil) { break }
            try await body(planner)
            group.cancelAll()
        }
    }

    /// Returns the errors of the plans in their order: no broker runs, so each names its host.
    private func errors(of snapshot: TargetSnapshot) async throws -> [String] {
        var errors: [String] = []
        for plan in snapshot.plans {
            guard case .task(let open) = plan.method else { continue }
            let error = await #expect(throws: DialError.self) { _ = try await open() }
            errors.append(try #require(error).description)
        }
        return errors
    }

    @Test func `a phone whose host is offline is named with that host, and not with the local usbmuxd`() async throws {
        try await createTeam()
        try await withPlanner { planner in
            let lost: UDID = "00008101-0001234567890000"
            planner.brokers()?.phones.record(lost, on: try host("delta"))

            let error = await #expect(throws: DialError.self) {
                _ = try await planner.snapshot(
                    of: .device(udid: lost, port: 80),
                    for: TunnelOwner(user: 1_000, holder: nil)
                )
            }

            #expect(error?.description.contains("was attached to the host delta, which is offline") == true)
        }
    }

    @Test(arguments: [(nil, ["beta", "alpha"]), ("alpha", ["alpha", "beta"])] as [(String?, [String])])
    func `a stream to a phone has one plan for each host: the one that leases the phone, then the best route`(
        leasing: String?,
        expected: [String]
    ) async throws {
        try await createTeam()
        if let leasing {
            let claim = TeamClaim(
                host: try host(leasing),
                endpoint: EndpointID("shop.\(leasing)"),
                device: udid,
                holder: SanitizedText("user 1000"),
                note: nil,
                createdAt: Self.date
            )
            try await put(claim, .claim(.device(udid)))
        }
        try await withPlanner { planner in
            let owner = TunnelOwner(user: 1_000, holder: nil)

            let snapshot = try await planner.snapshot(of: .device(udid: udid, port: 80), for: owner)

            let errors = try await errors(of: snapshot)
            #expect(errors.count == expected.count)
            for (error, host) in zip(errors, expected) { #expect(error.contains("the host \(host) "), "\(errors)") }
        }
    }

    @Test func `a phone that no host has, and a client of another host, get the error of this broker`() async throws {
        try await createTeam()
        let other: UDID = "00008030-001A2B3C4D5E6F71"
        try await withPlanner { planner in
            for (phone, holder) in [(other, nil), (udid, "host:alpha/uid:1000")] as [(UDID, String?)] {
                let owner = TunnelOwner(user: nil, holder: holder)

                let error = await #expect(throws: DialError.self) {
                    _ = try await planner.snapshot(of: .device(udid: phone, port: 80), for: owner)
                }

                #expect(error?.reason == .deviceAbsent)
            }
        }
    }
}

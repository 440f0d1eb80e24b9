import AccessControl
import Model
import Registry
import Samples
import SystemIO
import TestSupport
import Testing
import Tunnels

@testable import API

/// The rules of registrations that need the broker's listeners, the registry and access control.
@Suite struct RegistrationServiceTests {
    private struct NoTargets: TargetPlanner {
        let failureSentence = "no target"

        func snapshot(of target: TunnelTarget, for owner: TunnelOwner) throws(DialError) -> TargetSnapshot {
            throw DialError(.noRoute, "no target")
        }
    }

    private struct Fixture {
        let service: RegistrationService
        let registry: EndpointRegistry
        let grant: Grant
        let clock: ManualClock

        func principal(at source: RequestSource) -> Principal {
            Principal(.grant(grant), source: source, actor: .grant(grant.id))
        }

        @discardableResult
        func register(
            _ app: String = "com.example.shop",
            port: UInt16 = 9_000,
            from source: RequestSource = .tcp(address: "127.0.0.1")
        ) async throws -> Registration {
            let spec = RegistrationSpec(app: SanitizedText(app), port: port, kind: .mcp)
            return try await service.register(spec, by: principal(at: source), scope: nil)
        }
    }

    private func withService(_ body: (Fixture) async throws -> Void) async throws {
        try await withScratchFolder { scratch in
            let accessStore = try AccessStore(in: scratch.path, logger: .quiet)
            let invite = InviteSpec(Permissions([.endpointRegister], on: .all), use: .device)
            let (_, token) = try await accessStore.invites.create(invite, by: .broker, from: .broker)
            let client = RedemptionSpec(
                token: token.reveal(),
                client: String(repeating: "c", count: 22),
                name: SanitizedText("phone")
            )
            let (grant, _) = try await accessStore.invites.redeem(client, from: .tcp(address: "127.0.0.1"))
            let (registry, clock) = (EndpointRegistry(), ManualClock())
            let tunnels = try await TunnelTable(planner: NoTargets())
            let disconnector = EndpointDisconnector(registry: registry, tunnels: tunnels) { _ in }
            let service = RegistrationService(
                source: RegistrationSource(kinds: [.mcp], clock: clock) { await registry.apply($0) },
                accessStore: accessStore,
                registry: registry,
                approvalService: ApprovalService(
                    accessStore: accessStore,
                    registry: registry,
                    disconnector: disconnector
                ),
                disconnector: disconnector,
                addressRefusal: { _ in nil }
            )
            try await body(Fixture(service: service, registry: registry, grant: grant, clock: clock))
            await tunnels.relay.stop()
        }
    }

    @Test(arguments: ["10.99.0.1", "192.168.1.7", "::ffff:10.0.0.1", "fd00::1"])
    func `over the listener for this machine, only a loopback address registers`(address: String) async throws {
        try await withService { fixture in
            let error = await #expect(throws: RegistrationError.self) {
                try await fixture.register(from: .tcp(address: address))
            }
            #expect(error?.hint.contains("device") == true)
            // A client on the socket of a grant may be in a container with a loopback interface of its own.
            await #expect(throws: RegistrationError.self) { try await fixture.register(from: .socket(grant: "g")) }
            try await fixture.register(from: .tcp(address: "127.0.0.1"))
            try await fixture.register("b", from: .tcp(address: "::1"))
            try await fixture.register("c", from: .unix(uid: 0))
            #expect(await fixture.registry.endpoints.count == 3)
        }
    }

    @Test func `a port of the broker is refused, and a heartbeat ends the registration of a port that became one`()
        async throws
    {
        try await withService { fixture in
            let listener = try Listener(on: .ipv4(0x7F00_0001, port: 0))
            let port = try #require(listener.address.port)
            let refusal = RegistrationError.ownPort(port)
            await #expect(throws: refusal) { try await fixture.register(port: port) }
            #expect(await fixture.registry.endpoints.isEmpty)

            listener.close()
            let registration = try await fixture.register(port: port)
            let principal = fixture.principal(at: .tcp(address: "127.0.0.1"))
            try await fixture.service.heartbeat(registration.id, by: principal, scope: nil)

            let tunnel = try Listener(on: .ipv4(0x7F00_0001, port: port))
            await #expect(throws: refusal) {
                try await fixture.service.heartbeat(registration.id, by: principal, scope: nil)
            }
            #expect(await fixture.registry.endpoints.map(\.state) == [.offline])
            tunnel.close()
            await #expect(throws: RegistrationError.notFound(id: registration.id)) {
                try await fixture.service.heartbeat(registration.id, by: principal, scope: nil)
            }
        }
    }

    @Test func `the 33rd different app of a grant is refused, and the other ones still register`() async throws {
        try await withService { fixture in
            let principal = fixture.principal(at: .tcp(address: "127.0.0.1"))
            for number in 1...32 {
                let registration = try await fixture.register("app\(number)")
                try await fixture.service.end(registration.id, by: principal)
                fixture.clock.advance(by: .seconds(10))
            }
            await #expect(throws: RegistrationError.tooManyDifferent(limit: 32)) { try await fixture.register("app33") }
            try await fixture.register("app1")
            #expect(await fixture.registry.endpoints.count == 32)
        }
    }
}

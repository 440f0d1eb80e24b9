import AccessControl
import FoundationEssentials
import Model
import Registry
import Samples
import Synchronization
import TestSupport
import Testing

@testable import Apps

/// AppReveal on a cable and at an approved address, and the tokens that the broker holds for both.
@Suite(.scratchFolder) struct SameLaunchVerifierTests {
    private let scratch = ScratchFolder.current
    private static let token = String(repeating: "5e", count: 32)

    /// The servers behind the routes. Each accepts one token, or every token if it has none.
    private final class Servers: Sendable {
        struct Server {
            var token: String?
            var identity = ServerIdentity(
                kind: .appreveal,
                app: SanitizedText("com.example.shop"),
                version: SanitizedText("3.2.0"),
                device: SanitizedText("iPhone")
            )
        }

        private struct State {
            var servers: [Route: Server] = [:]
            var sent: [Route: [String]] = [:]
        }

        private let state = Mutex(State())

        subscript(_ route: Route) -> Server? {
            get { state.withLock { $0.servers[route] } }
            set { state.withLock { $0.servers[route] = newValue } }
        }

        /// The tokens that were sent over each route.
        var sent: [Route: [String]] { state.withLock { $0.sent } }

        var probe: IdentityProbe {
            IdentityProbe(
                health: { [self] route in
                    self[route].map { ServerIdentity(kind: .appreveal, wantsToken: $0.token != nil) }
                },
                launch: { [self] authorized in
                    let (route, token) = (authorized.route, authorized.secret?.reveal() ?? "none")
                    state.withLock { $0.sent[route, default: []].append(token) }
                    return self[route].flatMap { $0.token == nil || $0.token == token ? $0.identity : nil }
                }
            )
        }
    }

    private final class Fixture: Sendable {
        let registry = EndpointRegistry()
        let accessStore: AccessStore
        let servers = Servers()
        let verifier: SameLaunchVerifier
        let usb: Route
        let wifi: Route

        init(in scratch: ScratchFolder) async throws {
            let phone: UDID = "00008030-001A2B3C4D5E6F70"
            accessStore = try AccessStore(in: scratch.path, logger: .quiet)
            usb = .usb(USBRoute(udid: phone, port: 9_876))
            wifi = Self.route("192.168.1.20", machine: "iphone.local")
            verifier = SameLaunchVerifier(registry: registry, accessStore: accessStore, probe: servers.probe)
            let cabled = Sighting(
                id: Sighting.ID(source: .usbmuxd, key: "cable"),
                kind: .appreveal,
                app: SanitizedText(""),
                appIsBundleID: false,
                name: SanitizedText("appreveal on port 9876"),
                device: phone,
                role: Sighting.namelessRole(port: 9_876),
                routes: [usb]
            )
            await registry.apply(.seen(cabled))
            await advertise(wifi)
            for route in [usb, wifi] { servers[route] = Servers.Server(token: SameLaunchVerifierTests.token) }
        }

        static func route(_ address: String, machine: String) -> Route {
            .network(NetworkRoute(address: address, port: 9_876, interface: "eth0", machine: SanitizedText(machine)))
        }

        func advertise(_ route: Route) async {
            await registry.apply(
                .seen(
                    Sighting(
                        id: Sighting.ID(source: .bonjour, key: "\(route)"),
                        kind: .appreveal,
                        app: SanitizedText("com.example.shop"),
                        appIsBundleID: true,
                        name: SanitizedText("Shop"),
                        machine: route.machine,
                        routes: [route]
                    )
                )
            )
        }

        func endpoint(at route: Route) async throws -> Endpoint {
            try #require(await registry.endpoints.first { $0.routes.contains { $0.route == route } })
        }

        func approve(_ route: Route) async throws {
            let endpoint = try await endpoint(at: route)
            try await accessStore.approvals.approve(endpoint, by: .broker, from: .broker)
            await registry.setTrust(accessStore.approvals.trust(of: endpoint.id), of: endpoint.id)
        }

        func setToken(_ token: String = SameLaunchVerifierTests.token, at route: Route) async throws {
            let endpoint = try await endpoint(at: route)
            try await accessStore.secrets.set(EndpointSecret(token), of: endpoint, by: .broker, from: .broker)
            await registry.setTrust(accessStore.approvals.trust(of: endpoint.id), of: endpoint.id)
        }

        /// Approves the advertisement, and stores the token of the launch for both endpoints.
        func trustBoth() async throws {
            try await approve(wifi)
            for route in [usb, wifi] { try await setToken(at: route) }
        }

        /// Checks the pairs that are new, once.
        func check() async { for proof in await verifier.newCandidates() { _ = await verifier.verify(proof) } }

        var listed: Int { get async { await registry.endpoints.combined.count } }
    }

    private func withFixture(_ body: (Fixture) async throws -> Void) async throws {
        let fixture = try await Fixture(in: scratch)
        try await body(fixture)
        try await fixture.accessStore.close()
    }

    @Test func `two approved endpoints whose servers accept one token are shown as one`() async throws {
        try await withFixture { fixture in
            try await fixture.trustBoth()
            #expect(await fixture.listed == 2)

            await fixture.check()

            #expect(await fixture.listed == 1)
            let cabled = try await fixture.endpoint(at: fixture.usb)
            #expect(try await fixture.endpoint(at: fixture.wifi).sameLaunchAs == cabled.id)
            #expect(cabled.app.text == "com.example.shop", "the app has told its name over the cable")
            #expect(fixture.servers.sent == [fixture.usb: [Self.token], fixture.wifi: [Self.token]])
        }
    }

    @Test func `the service finds the pair by itself, and separates it when a token is replaced`() async throws {
        try await withFixture { fixture in
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await fixture.verifier.run() }
                try await fixture.trustBoth()
                try await eventually("both are one") { await fixture.listed == 1 }

                try await fixture.setToken(String(repeating: "ab", count: 32), at: fixture.usb)
                try await eventually("both are separate") { await fixture.listed == 2 }
                #expect(fixture.servers.sent.values.joined().allSatisfy { $0 == Self.token })
                group.cancelAll()
            }
        }
    }

    @Test func `different tokens are compared in the broker and sent nowhere`() async throws {
        try await withFixture { fixture in
            try await fixture.trustBoth()
            try await fixture.setToken(String(repeating: "ab", count: 32), at: fixture.usb)

            await fixture.check()

            #expect(await fixture.listed == 2)
            #expect(fixture.servers.sent.isEmpty)
        }
    }

    @Test func `no token is sent to an unapproved advertisement, whatever it announces`() async throws {
        try await withFixture { fixture in
            let thief = Fixture.route("192.168.1.66", machine: "iphone-2.local")
            fixture.servers[thief] = Servers.Server(token: Self.token)
            await fixture.advertise(thief)
            try await fixture.setToken(at: fixture.usb)
            await fixture.check()
            #expect(fixture.servers.sent.isEmpty)

            try await fixture.approve(fixture.wifi)
            try await fixture.setToken(at: fixture.wifi)
            await fixture.check()
            #expect(fixture.servers.sent[thief] == nil)
            #expect(try await fixture.endpoint(at: thief).sameLaunchAs == nil)
        }
    }

    @Test func `one token for two phones by mistake joins nothing, because one server rejects it`() async throws {
        try await withFixture { fixture in
            fixture.servers[fixture.wifi]?.token = String(repeating: "ab", count: 32)
            try await fixture.trustBoth()

            await fixture.check()

            #expect(await fixture.listed == 2)
        }
    }

    @Test func `a server that needs no token proves nothing and gets none`() async throws {
        try await withFixture { fixture in
            fixture.servers[fixture.wifi]?.token = nil
            try await fixture.trustBoth()

            await fixture.check()

            #expect(await fixture.listed == 2)
            #expect(fixture.servers.sent.isEmpty)
        }
    }

    @Test func `servers that describe different devices are not one`() async throws {
        try await withFixture { fixture in
            fixture.servers[fixture.wifi]?.identity.device = SanitizedText("iPad")
            try await fixture.trustBoth()

            await fixture.check()

            #expect(await fixture.listed == 2)
        }
    }
}

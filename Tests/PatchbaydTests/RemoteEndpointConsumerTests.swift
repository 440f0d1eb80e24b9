import AccessControl
import FoundationEssentials
import Logging
import Model
import Apps
import TestSupport
import Testing
import Tunnels

@testable import API
@testable import Registry
@testable import patchbayd

/// An endpoint of another host is only listed. No part of this broker probes, saves, advertises or dials it.
@Suite(.timeLimit(.minutes(1))) struct RemoteEndpointConsumerTests {
    private struct NoRoutes: RouteResolver {
        func resolve(_ target: TunnelTarget) throws(DialError) -> ResolvedTarget { ResolvedTarget([]) }
    }

    private let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    private let registry = EndpointRegistry()
    private let id: EndpointID

    init() throws { id = try #require(EndpointID("shop.lab2")) }

    /// Lists an endpoint of lab2: online, approved, on a cable and at an address.
    private func list(_ kind: EndpointKind = .appreveal) async throws {
        let phone = try #require(UDID("00008030-001A2B3C4D5E6F70"))
        let route = NetworkRoute(address: "127.0.0.1", port: 9)
        let endpoint = Endpoint(
            id: id.onItsHost,
            kind: kind,
            app: SanitizedText("com.example.shop"),
            name: SanitizedText("Shop"),
            location: Endpoint.Location(udid: phone),
            state: .online,
            approval: .approved,
            routes: [EndpointRoute(.usb(USBRoute(udid: phone, port: 9))), EndpointRoute(.network(route))],
            sources: [.usbmuxd],
            firstSeenAt: Date(timeIntervalSince1970: 0),
            lastSeenAt: nil
        )
        await registry.setOwnHost(HostName("lab1"))
        await registry.apply([.put(endpoint, of: try #require(id.host))])
        #expect(try await registry.endpoint(id).shownRoutes.count == 2)
    }

    @Test func `it is never due for a probe`() async throws {
        try await list()
        let tunnels = try await TunnelTable(
            planner: RoutePlanner(resolver: NoRoutes(), planner: FakeDialer.silent()),
            logger: logger
        )
        let store = RegistryLivenessStore(
            registry: registry,
            bonjour: nil,
            tunnels: tunnels,
            clients: ConnectionLimiter()
        )

        #expect(try #require(await store.list(ifChangedSince: nil)).endpoints.isEmpty)
        await store.report(DialError(.refused, "refused"), of: id)
        #expect(try await registry.endpoint(id).state == .online)
        await tunnels.relay.stop()
    }

    @Test func `it is never saved`() async throws {
        try await list()
        #expect(await registry.records.isEmpty)
    }

    @Test func `it is never advertised`() async throws {
        try await list()
        #expect(Readvertisement.all(for: await registry.localEndpoints).isEmpty)
        #expect(Readvertisement.all(for: await registry.endpoints).isEmpty)
    }

    @Test func `it is never a target of this broker's dialer`() async throws {
        try await list()
        try await withScratchFolder { scratch in
            let resolver = RegistryRouteResolver(
                registry: registry,
                devices: nil,
                accessStore: try AccessStore(in: scratch.path, logger: logger)
            )

            let error = await #expect(throws: DialError.self) { try await resolver.resolve(.endpoint(id)) }

            #expect(error?.reason == .noRoute)
            #expect(error?.description.contains("shop.lab2 belongs to the host lab2") == true)
        }
    }

    @Test func `a state debugger of another host gets no stream, and approves none`() async throws {
        try await list(.debug)
        let endpoints = await registry.endpoints
        #expect(throws: DialError.self) { try DebuggerDialer.routes(toDebugger: "Shop", among: endpoints) }
        #expect(await registry.localEndpoints.isEmpty)
    }

    @Test func `its phone is no phone of a local endpoint`() async throws {
        try await list()
        #expect(registry.linkedPhones.all.isEmpty)
    }

    @Test func `endpoints of other hosts above the limit are a problem that the status shows`() throws {
        #expect(SourceStatus(of: RemoteRefusals(counts: [:])) == nil)

        let status = SourceStatus(of: RemoteRefusals(counts: [try #require(id.host): 1]))

        #expect(
            status?.detail
                == "endpoints of other hosts are not listed: 1 of lab2, because the limit is 16384 endpoints"
        )
    }
}

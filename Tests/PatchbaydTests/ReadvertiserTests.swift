import Discovery
import FoundationEssentials
import Model
import Registry
import Samples
import Synchronization
import SystemIO
import TestSupport
import Testing
import Tunnels

@testable import patchbayd

/// Records advertisements instead of publishing them.
private final class FakePublisher: AdvertisementPublisher {
    private struct State {
        var advertisements: [Advertisement] = []
        var attempts = 0
        var isFull = false
    }

    private let state = Mutex(State())
    private let changed = AsyncStream.makeStream(of: Void.self)

    init(isFull: Bool = false) { state.withLock { $0.isFull = isFull } }

    /// The number of calls of `advertise`.
    var attempts: Int { state.withLock { $0.attempts } }
    var specs: [AdvertisementSpec] { state.withLock { $0.advertisements.map(\.spec) } }

    func advertise(_ spec: AdvertisementSpec) async throws -> Advertisement {
        try state.withLock { state in
            state.attempts += 1
            if state.isFull { throw DiscoveryError.tooManyAdvertisements(limit: 32) }
            let advertisement = Advertisement(
                id: "a\(state.attempts)",
                spec: spec,
                state: .published,
                publishedName: SanitizedText(spec.name)
            )
            state.advertisements.append(advertisement)
            return advertisement
        }
    }

    func advertisements() async -> [Advertisement] { state.withLock { $0.advertisements } }

    func update(_ id: String, txt: TXTRecord) async throws -> Advertisement {
        try state.withLock { state in
            let index = try #require(state.advertisements.firstIndex { $0.id == id })
            let old = state.advertisements[index]
            var spec = old.spec
            spec.txt = txt
            state.advertisements[index] = Advertisement(
                id: id,
                spec: spec,
                state: .published,
                publishedName: old.publishedName
            )
            return state.advertisements[index]
        }
    }

    func withdraw(_ id: String) async throws {
        state.withLock { $0.advertisements.removeAll { $0.id == id } }
        changed.continuation.yield()
    }

    func advertisementChanges() async -> AsyncStream<Void> { changed.stream }
}

@Suite(.timeLimit(.minutes(1))) struct ReadvertiserTests {
    private struct NoRoutes: RouteResolver {
        func resolve(_ target: TunnelTarget) async throws(DialError) -> ResolvedTarget { ResolvedTarget([]) }
    }

    private let registry = EndpointRegistry()
    private let phone = UDID("00008030-001A2B3C4D5E6F70")

    private func sighting(launchID: String = "b1") -> Sighting {
        Sighting.sample(
            source: .usbmuxd,
            key: "shop",
            device: phone,
            routes: [.usb(phone, port: 9_876)],
            launchID: launchID
        )
    }

    /// Runs a readvertiser during the body.
    private func withReadvertiser(_ publisher: FakePublisher, _ body: (TunnelTable) async throws -> Void) async throws {
        let tunnels = try await TunnelTable(
            planner: RoutePlanner(resolver: NoRoutes(), planner: FakeDialer.silent()),
            logger: .quiet
        )
        let readvertiser = Readvertiser(
            registry: registry,
            tunnels: tunnels,
            publisher: publisher,
            owner: 1_234,
            logger: .quiet
        )
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await tunnels.run() }
            group.addTask { try await readvertiser.run() }
            try await body(tunnels)
            group.cancelAll()
        }
    }

    @Test func `the tunnel of a service has one owner, checks browsers and users, and listens on loopback`()
        async throws
    {
        let publisher = FakePublisher()
        await registry.apply(.seen(sighting()))
        try await withReadvertiser(publisher) { tunnels in
            let spec = try await eventually("the service is published") { publisher.specs.first }
            let tunnel = try #require(await tunnels.list().first)

            #expect(spec.local == true && tunnel.owner == 1_234)
            #expect(!tunnel.spec.allowAnyUser && !tunnel.spec.allowBrowsers && !tunnel.spec.persistent)
            #expect(tunnel.listenAddresses.contains(.tcp(host: "127.0.0.1", port: spec.port)))
            for case .tcp(let host, _) in tunnel.listenAddresses { #expect(["127.0.0.1", "::1"].contains(host)) }
        }
    }

    @Test func `a new launch changes the TXT record only, and the end of the app ends service and tunnel`()
        async throws
    {
        let publisher = FakePublisher()
        await registry.apply(.seen(sighting()))
        try await withReadvertiser(publisher) { tunnels in
            let first = try await eventually("the service is published") { publisher.specs.first }
            await registry.apply(.seen(sighting(launchID: "b2")))
            try await eventually("the TXT record follows") { publisher.specs.first?.txt["boot"] == "b2" }
            #expect(publisher.specs.map(\.port) == [first.port] && publisher.attempts == 1)

            await registry.apply(.lost(sighting().id))
            try await eventually("both have ended") {
                let isClosed = await tunnels.list().isEmpty
                return publisher.specs.isEmpty && isClosed
            }
        }
    }

    @Test func `a service that cannot be published leaves no tunnel, and is tried again when the app starts again`()
        async throws
    {
        let publisher = FakePublisher(isFull: true)
        await registry.apply(.seen(sighting()))
        try await withReadvertiser(publisher) { tunnels in
            try await eventually("it is tried once") {
                let isClosed = await tunnels.list().isEmpty
                return publisher.attempts == 1 && isClosed
            }
            var isPresent = true
            try await eventually("it is tried again") {
                await registry.apply(isPresent ? .lost(sighting().id) : .seen(sighting()))
                isPresent.toggle()
                return publisher.attempts > 1
            }
            #expect(publisher.specs.isEmpty)
        }
    }
}

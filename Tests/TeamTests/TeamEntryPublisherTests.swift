import FoundationEssentials
import Model
import Registry
import Samples
import ServiceLifecycle
import Synchronization
import TestSupport
import Testing

@testable import Team

/// The entries of this host in the registry of the team.
@Suite(.timeLimit(.minutes(1))) struct TeamEntryPublisherTests {
    /// The addresses of this machine, which a test changes.
    private final class Addresses: Sendable {
        private let list = Mutex<[String]>([])

        var all: [String] {
            get { list.withLock { $0 } }
            set { list.withLock { $0 = newValue } }
        }
    }

    private let store = InMemoryTeamStore()
    private let clock = ManualClock()
    private let addresses = Addresses()
    private let host: HostName
    private let session: TeamSession
    private let publisher: TeamPublisher
    private let entries: TeamEntryPublisher

    init() throws {
        let host: HostName = "lab1"
        self.host = host
        session = TeamSession(store: store, logger: .quiet)
        publisher = TeamPublisher(host: host, session: session)
        entries = TeamEntryPublisher(
            publisher: publisher,
            registry: EndpointRegistry(),
            attachedDevices: FakeDevices(),
            host: { [addresses] in
                TeamHost(
                    name: host,
                    version: "1",
                    addresses: addresses.all,
                    since: Date(timeIntervalSince1970: 0),
                    generation: 0
                )
            },
            clock: clock
        )
    }

    private func endpoint(_ id: String) throws -> Endpoint {
        Endpoint.sample(
            try #require(EndpointID(id)),
            location: Endpoint.Location(machine: SanitizedText("iphone.local")),
            routes: [.network("192.168.1.20", port: 8080)],
            sources: [.bonjour]
        )
    }

    /// Runs services during the body.
    private func withRunning(_ services: [any Service], _ body: @Sendable () async throws -> Void) async throws {
        let group = ServiceGroup(configuration: ServiceGroupConfiguration(services: services, logger: .quiet))
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            tasks.addTask { try await group.run() }
            let result: Result<Void, any Error>
            do { result = .success(try await body()) } catch { result = .failure(error) }
            await group.triggerGracefulShutdown()
            try await tasks.waitForAll()
            try result.get()
        }
    }

    /// The published addresses of this host; nil without its entry.
    private func published() async throws -> [String]? {
        let entry = try await store.list(TeamKey.host(host).text).entries.first
        return entry.flatMap { TeamCoding.value(TeamHost.self, from: $0.value) }?.addresses
    }

    private func publishedEndpoints() async throws -> Int {
        try await store.list(TeamKey.endpoints(of: host)).entries.count
    }

    @Test func `an address that the machine gets after the start of the broker is published`() async throws {
        try await withRunning([session, publisher, entries]) {
            try await eventually("the host is published") { try await published() == [] }
            await clock.waitForSleepers()
            addresses.all = ["10.0.0.7:7284"]

            clock.advance(by: .seconds(10))

            try await eventually("the address is published") { try await published() == ["10.0.0.7:7284"] }
        }
    }

    @Test func `an endpoint that was removed while nothing read the changes is deleted`() async throws {
        let shop = try endpoint("shop")
        publisher.setHost(entries.host())
        publisher.setEntries(endpoints: [shop], devices: [])
        try await withRunning([session, publisher]) {
            try await eventually("the endpoint is published") { try await publishedEndpoints() == 1 }
            try await withThrowingTaskGroup(of: Void.self) { group in
                // The registry does not have the endpoint any more.
                group.addTask { await entries.publishEndpoints(known: [shop.id]) }
                try await eventually("the endpoint is deleted") { try await publishedEndpoints() == 0 }
                group.cancelAll()
            }
        }
    }
}

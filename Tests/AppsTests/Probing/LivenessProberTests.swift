import FoundationEssentials
import Glibc
import Model
import Samples
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import Apps

@Suite(.timeLimit(.minutes(1))) struct LivenessProberTests {
    @Test func `a responding route is not delayed by the others`() async {
        let store = Store()
        let prober = LivenessProber(store: store, dialer: answering { $0.port == 1 ? .silence : .connection })
        let start = ContinuousClock.now

        await prober.probe(endpoint(ports: [1, 1, 2]))

        #expect(store.reports == [nil])
        #expect(ContinuousClock.now - start < .seconds(2))
    }

    @Test func `a probe takes at most 5 s with any number of dead routes`() async {
        let store = Store()
        let prober = LivenessProber(store: store, dialer: FakeDialer.silent())
        let start = ContinuousClock.now

        await prober.probe(endpoint(ports: Array(1...9)))

        #expect(store.reports.map { $0?.reason } == [.timedOut])
        #expect(ContinuousClock.now - start < .seconds(5))
    }

    @Test func `the error of the best route is reported`() async {
        let store = Store()
        let prober = LivenessProber(
            store: store,
            dialer: answering { .failure(DialError($0.port == 1 ? .refused : .unreachable, "\($0.port)")) }
        )

        await prober.probe(endpoint(ports: [1, 2]))

        #expect(store.reports == [DialError(.refused, "1")])
    }

    @Test func `if the first route responds at once, no other route is dialled`() async {
        let dialer = answering { _ in .connection }
        let prober = LivenessProber(store: Store(), dialer: dialer)

        await prober.probe(endpoint(ports: [1, 2, 3]))

        #expect(dialer.routes.map(\.port) == [1])
    }

    @Test func `an unapproved address is never dialled, not even by a probe`() async {
        let (dialer, store) = (answering { _ in .connection }, Store())
        let prober = LivenessProber(store: store, dialer: dialer)
        var advert = endpoint(ports: [1, 2])
        for index in advert.routes.indices { advert.routes[index].approval = .pending }

        await prober.probe(advert)
        #expect(dialer.routes.isEmpty && store.reports.isEmpty)

        advert.routes[1].approval = .approved
        await prober.probe(advert)
        #expect(dialer.routes.map(\.port) == [2])
    }

    @Test func `a new endpoint is probed at once, and again when it is due`() async {
        let (dialer, store, clock) = (answering { _ in .connection }, Store(), ManualClock())
        let prober = LivenessProber(store: store, dialer: dialer, clock: clock)

        await withTaskGroup { group in
            group.addTask { try? await prober.run() }
            await clock.waitForSleeper()
            clock.advance(by: LivenessProber.minReadingInterval)
            // No timer fires from here to the first probe.
            store.set([endpoint(ports: [7])])
            for await count in dialer.begun.stream where count == 1 { break }

            while dialer.routes.count < 2 {
                await clock.waitForSleepers()
                clock.advance(by: ProbeSchedule.whileOnline)
            }
            group.cancelAll()
        }

        #expect(dialer.routes.map(\.port) == [7, 7])
    }

    private func endpoint(ports: [UInt16]) -> Endpoint {
        Endpoint(
            id: EndpointID(app: SanitizedText("app"), location: ""),
            kind: .mcp,
            app: SanitizedText("app"),
            name: SanitizedText("app"),
            state: .online,
            approval: .approved,
            routes: ports.map { EndpointRoute(.network(NetworkRoute(address: "192.168.1.2", port: $0))) },
            firstSeenAt: Date(),
            lastSeenAt: Date()
        )
    }

    private enum Answer {
        case connection
        case silence
        case failure(DialError)
    }

    private func answering(_ answer: @escaping @Sendable (Route) -> Answer) -> FakeDialer {
        FakeDialer { route in
            switch answer(route) {
            case .connection: Connection(descriptor: Descriptor(owning: dup(0)), halfClose: .propagates)
            case .silence: try await FakeDialer.neverConnect()
            case .failure(let failure): throw failure
            }
        }
    }

    private final class Store: LivenessStore {
        private let told = Mutex<[DialError?]>([])
        private let content = Mutex<(endpoints: [Endpoint], revision: UInt64)>(([], 0))
        private let subscribers = Broadcast<Void>(slow: .keepsNewest(1))

        var reports: [DialError?] { told.withLock { $0 } }

        func set(_ endpoints: [Endpoint]) {
            content.withLock { $0 = (endpoints, $0.revision + 1) }
            subscribers.send(())
        }

        func list(ifChangedSince revision: UInt64?) async -> (endpoints: [Endpoint], revision: UInt64)? {
            content.withLock { $0.revision == revision ? nil : $0 }
        }

        func watched() async -> WatchedEndpoints { .all }
        func changes() async -> [any AsyncSequence<Void, Never> & Sendable] { [subscribers.subscribe()] }
        func report(_ failure: DialError?, of id: EndpointID) async { told.withLock { $0.append(failure) } }
    }
}

import FoundationEssentials
import Glibc
import Model
import SystemIO
import Synchronization
import Testing

@testable import Probing

@Suite struct LivenessProberTests {
    @Test func `a route that answers is not kept waiting by those that do not`() async {
        let board = Board()
        let prober = LivenessProber(board: board, dialer: Dialer { $0.port != 1 ? nil : .silence })
        let start = ContinuousClock.now

        await prober.probe(endpoint(ports: [1, 1, 2]))

        #expect(board.reports == [nil])
        #expect(ContinuousClock.now - start < .seconds(2))
    }

    @Test func `no number of dead routes makes a probe take more than 5 s`() async {
        let board = Board()
        let prober = LivenessProber(board: board, dialer: Dialer { _ in .silence })
        let start = ContinuousClock.now

        await prober.probe(endpoint(ports: Array(1...9)))

        #expect(board.reports.map { $0?.reason } == [.timedOut])
        #expect(ContinuousClock.now - start < .seconds(5))
    }

    @Test func `what is wrong with the best route is what is told`() async {
        let board = Board()
        let prober = LivenessProber(
            board: board,
            dialer: Dialer { .failure(DialError($0.port == 1 ? .refused : .unreachable, "\($0.port)")) }
        )

        await prober.probe(endpoint(ports: [1, 2]))

        #expect(board.reports == [DialError(.refused, "1")])
    }

    @Test func `a route that answers at once is the only one that is dialled`() async {
        let dialled = Dialled()
        let prober = LivenessProber(
            board: Board(),
            dialer: Dialer { route in
                dialled.add(route.port)
                return nil
            }
        )

        await prober.probe(endpoint(ports: [1, 2, 3]))

        #expect(dialled.ports == [1])
    }

    @Test func `an address that no owner approved is not dialled, not even when its endpoint is probed`() async {
        let (dialled, board) = (Dialled(), Board())
        let prober = LivenessProber(
            board: board,
            dialer: Dialer { route in
                dialled.add(route.port)
                return nil
            }
        )
        var advert = endpoint(ports: [1, 2])
        for index in advert.routes.indices { advert.routes[index].approval = .discovered }

        await prober.probe(advert)
        #expect(dialled.ports.isEmpty && board.reports.isEmpty)

        advert.routes[1].approval = .approved
        await prober.probe(advert)
        #expect(dialled.ports == [2])
    }

    private func endpoint(ports: [UInt16]) -> Endpoint {
        Endpoint(
            id: EndpointID(app: SanitizedText("app"), place: ""),
            kind: .mcp,
            app: SanitizedText("app"),
            name: SanitizedText("app"),
            state: .online,
            approval: .approved,
            routes: ports.map { EndpointRoute(.lan(LANRoute(address: "192.168.1.2", port: $0))) },
            since: Date(),
            lastSeen: Date()
        )
    }

    private final class Board: LivenessStore {
        private let told = Mutex<[DialError?]>([])

        var reports: [DialError?] { told.withLock { $0 } }

        func list(ifChangedSince revision: UInt64?) async -> (endpoints: [Endpoint], revision: UInt64)? { nil }
        func watched() async -> WatchedEndpoints { .all }
        func report(_ failure: DialError?, of id: EndpointID) async { told.withLock { $0.append(failure) } }
    }

    private final class Dialled: Sendable {
        private let list = Mutex<[UInt16]>([])

        var ports: [UInt16] { list.withLock { $0 } }

        func add(_ port: UInt16) { list.withLock { $0.append(port) } }
    }

    /// Answers each dial as it is told: nil is a stream.
    private struct Dialer: SystemIO.Dialer {
        enum Answer {
            case silence
            case failure(DialError)
        }

        let answer: @Sendable (Route) -> Answer?

        init(_ answer: @escaping @Sendable (Route) -> Answer?) { self.answer = answer }

        func dial(_ route: Route) async throws -> Connection {
            switch answer(route) {
            case .failure(let failure): throw failure
            case .silence: try await Task.sleep(for: .seconds(60))
            case nil: break
            }
            return Connection(descriptor: Descriptor(owning: dup(0)), halfClose: .propagates)
        }
    }
}

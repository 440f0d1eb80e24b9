import Glibc
import Model
import Samples
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import Apps

/// The watcher with real connections to a server on loopback.
@Suite(.timeLimit(.minutes(1)), .scratchFolder) struct LaunchWatcherTests {
    private let scratch = ScratchFolder.current
    private let id = EndpointID("shop-phone")

    /// A server that answers HTTP requests on any number of connections, and keeps idle ones open.
    private static func server(port: UInt16 = 0, in scratch: ScratchFolder) throws -> LoopbackServer {
        try LoopbackServer(port: port, in: scratch, http: { _ in nil })
    }

    private static func route(_ server: LoopbackServer) -> Route {
        .network(NetworkRoute(address: "127.0.0.1", port: server.port))
    }

    private static func running(_ body: @Sendable (LaunchWatcher, ObservedLaunches) async throws -> Void) async throws {
        let launches = ObservedLaunches()
        let watcher = LaunchWatcher(launches: launches, dialer: NetworkPlanner())
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await watcher.run() }
            try await body(watcher, launches)
            group.cancelAll()
        }
    }

    @Test func `the end of a server ends the observation, and the next server has another one`() async throws {
        try await Self.running { watcher, launches in
            let server = try Self.server(in: scratch)
            let route = Self.route(server)
            watcher.set([route], of: id)
            let first = try await eventually("the server is observed") { launches[route] }
            #expect(await first.isUnbroken())

            server.stop()
            var endings = watcher.endings.makeAsyncIterator()
            #expect(await endings.next() == route)
            #expect(first.isEnded)
            let again = try Self.server(port: server.port, in: scratch)
            let second = try await eventually("the next server is observed") { launches[route] }
            #expect(second != first && again.port == server.port)
        }
    }

    @Test func `an observation is broken before the watcher has handled the end`() async throws {
        try await Self.running { _, launches in
            let server = try Self.server(in: scratch)
            let route = Self.route(server)
            let observation = try #require(await launches.observation(of: route))
            server.stop()
            // The server's threads close their connections one after the other.
            try await eventually("the observation is broken") { await !observation.isUnbroken() }
            #expect(launches[route] == nil)
        }
    }

    @Test func `a port that refuses connections cannot be observed`() async throws {
        try await Self.running { _, launches in
            let server = try Self.server(in: scratch)
            server.stop()
            try await eventually("the port is closed") { await launches.observation(of: Self.route(server)) == nil }
        }
    }

    @Test func `a server with one connection at a time is polled and stays usable`() async throws {
        try await Self.running { watcher, launches in
            let turn = Mutex(())
            let server = try LoopbackServer(in: scratch) { connection in
                turn.withLock { _ in
                    var buffer = [UInt8](repeating: 0, count: 8_192)
                    guard recv(connection, &buffer, buffer.count, 0) > 0 else { return }
                    let answer = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
                    _ = answer.withCString { send(connection, $0, strlen($0), CInt(MSG_NOSIGNAL)) }
                }
            }
            let route = Self.route(server)
            watcher.set([route], of: id)
            let observation = try await eventually("the server is observed") { launches[route] }
            // The idle connection ends within moments, so the server answers others.
            try await eventually("the server answers") {
                await ServiceDetector(dialer: NetworkPlanner()).health(of: route) != nil
            }
            #expect(await observation.isUnbroken())
        }
    }

    @Test func `servers that send without end on idle connections occupy no thread`() async throws {
        try await Self.running { watcher, launches in
            let chunk = [UInt8](repeating: UInt8(ascii: "x"), count: 65_536)
            let flood = try (0..<4).map { _ in
                try LoopbackServer(in: scratch) { connection in
                    while send(connection, chunk, chunk.count, CInt(MSG_NOSIGNAL)) > 0 {}
                }
            }
            watcher.set(Set(flood.map(Self.route)), of: id)
            try await eventually("every server was dialled twice") { flood.allSatisfy { $0.accepted > 1 } }
            let server = try Self.server(in: scratch)
            let observation = await launches.observation(of: Self.route(server))
            #expect(await observation?.isUnbroken() == true)
            #expect(flood.allSatisfy { launches[Self.route($0)]?.isContinuous != true })
        }
    }
}

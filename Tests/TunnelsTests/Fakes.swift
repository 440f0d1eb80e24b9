import Model
import SystemIO
import Synchronization
import Tunnels

/// A resolver that returns a configurable result.
final class FakeResolver: RouteResolver {
    private let answer: Mutex<Result<[Route], DialError>>

    init(_ routes: [Route] = []) { answer = Mutex(.success(routes)) }

    func set(_ result: Result<[Route], DialError>) { answer.withLock { $0 = result } }

    func routes(to target: TunnelTarget) async throws(DialError) -> [Route] {
        try answer.withLock { $0 }.get()
    }
}

/// A dialer that never connects and reports its cancellation.
final class SilentDialer: Dialer {
    let begun = AsyncStream.makeStream(of: Void.self)
    let ended = AsyncStream.makeStream(of: Void.self)

    func dial(_ route: Route) async throws -> Connection {
        begun.continuation.yield()
        defer { ended.continuation.yield() }
        try await Task.sleep(for: .seconds(600))
        throw DialError(.timedOut, "nobody waits so long")
    }
}

/// A dialer that counts its dials.
final class CountingDialer: Dialer {
    private let dials = Atomic(0)

    var count: Int { dials.load(ordering: .relaxed) }

    func dial(_ route: Route) async throws -> Connection {
        dials.add(1, ordering: .relaxed)
        return try await LANDialer().dial(route)
    }
}

/// A server that echoes every byte until EOF.
final class EchoServer: Sendable {
    private let listener: Listener

    init() throws { listener = try Listener(on: .ipv4(0x7F00_0001, port: 0)) }

    var route: Route { .network(NetworkRoute(address: "127.0.0.1", port: listener.address.port ?? 0)) }

    func run() async {
        await withDiscardingTaskGroup { group in
            while let number = try? await listener.accept().release() {
                group.addTask {
                    let stream = Stream(owning: Descriptor(owning: number))
                    while let bytes = try? await stream.receiveSome(), !bytes.isEmpty { try? await stream.send(bytes) }
                }
            }
        }
    }
}

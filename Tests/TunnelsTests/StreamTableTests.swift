import Glibc
import Model
import SystemIO
import TestSupport
import Testing
import Tunnels

/// Streams to targets without a local address.
@Suite(.serialized, .timeLimit(.minutes(1)))
struct StreamTableTests {
    private let fixture = TunnelTableFixture()
    private let network = Route.network(NetworkRoute(address: "192.0.2.1", port: 80, interface: "eth0"))
    private let cable = Route.usb(USBRoute(udid: TunnelTableFixture.udid, port: 80))

    /// Opens a stream, passes the client's end and the stream to the body, and waits for the end of the stream.
    private func withStream(
        of table: TunnelTable,
        _ body: (SocketStream, TargetStream) async throws -> Void
    ) async throws {
        let (started, continuation) = AsyncStream.makeStream(of: (SocketStream, TargetStream).self)
        let target = fixture.target
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                defer { continuation.finish() }
                try await table.streams.open(target, for: TunnelOwner(user: 0, holder: nil)) { stream in
                    let (inner, outer) = try loopbackSocketPair()
                    continuation.yield((SocketStream(owning: Descriptor(owning: outer)), stream))
                    return Descriptor(owning: inner)
                }
            }
            for await (client, stream) in started {
                try await body(client, stream)
                break
            }
            try await group.waitForAll()
        }
    }

    private func withTable(_ dialer: any ConnectPlanner, _ body: (TunnelTable) async throws -> Void) async throws {
        let table = try await fixture.table(dialer)
        try await fixture.running(table) { try await body(table) }
    }

    @Test func `a stream relays both directions, and is counted but not listed as a tunnel`() async throws {
        let dialer = FakeDialer.connected()
        fixture.resolver.set(.success([network]))
        try await withTable(dialer) { table in
            try await withStream(of: table) { client, _ in
                var peers = dialer.peers.makeAsyncIterator()
                let app = try #require(await peers.next())
                try await client.send([1, 2, 3])
                #expect(try await app.receive(3) == [1, 2, 3])
                client.finish()
                #expect(try await app.receiveToEnd() == [])
                try await app.send([4])
                #expect(table.streams.statistics.open == 1)
                #expect(table.streams.targets == [fixture.target])
                app.finish()
                #expect(try await client.receiveToEnd() == [4])
            }
            let statistics = table.streams.statistics
            #expect(statistics.connections == 1 && statistics.open == 0)
            #expect(statistics.bytesUp == 3 && statistics.bytesDown == 1)
            #expect(table.streams.targets.isEmpty)
            #expect(await table.list().isEmpty)
        }
    }

    @Test func `close resets the client and the target before it returns`() async throws {
        let echo = try EchoServer()
        defer { echo.stop() }
        fixture.resolver.set(.success([network]))
        try await withTable(FakeDialer { _ in try await NetworkPlanner().dial(echo.route) }) { table in
            try await withStream(of: table) { client, stream in
                try await client.send([1])
                #expect(try await client.receive(1) == [1])
                await stream.close()
                await #expect(throws: SocketStream.Failure(code: ECONNRESET)) { try await client.receiveSome() }
            }
        }
    }

    @Test func `a revoked approval resets network streams, and streams over a cable stay`() async throws {
        let echo = try EchoServer()
        defer { echo.stop() }
        try await withTable(FakeDialer { _ in try await NetworkPlanner().dial(echo.route) }) { table in
            fixture.resolver.set(.success([cable]))
            try await withStream(of: table) { near, _ in
                fixture.resolver.set(.success([network]))
                try await withStream(of: table) { far, _ in
                    try await far.send([1])
                    #expect(try await far.receive(1) == [1])
                    fixture.resolver.set(.failure(DialError(.forbidden, "it is not where it was approved")))
                    await table.refreshTargets()
                    await #expect(throws: SocketStream.Failure(code: ECONNRESET)) { try await far.receiveSome() }
                }
                try await near.send([9])
                #expect(try await near.receive(1) == [9])
                near.finish()
            }
        }
    }

    @Test func `an approval that is revoked during the dial drops the stream`() async throws {
        let echo = try EchoServer()
        defer { echo.stop() }
        let gate = AsyncStream.makeStream(of: Void.self)
        let dialer = FakeDialer { _ in
            for await _ in gate.stream {}
            return try await NetworkPlanner().dial(echo.route)
        }
        fixture.resolver.set(.success([network]))
        try await withTable(dialer) { table in
            async let opened: Void = withStream(of: table) { client, _ in
                await #expect(throws: SocketStream.Failure(code: ECONNRESET)) { try await client.receiveSome() }
            }
            for await _ in dialer.begun.stream { break }
            await table.streams.closeStreams(to: [fixture.target], over: .network)
            gate.continuation.finish()
            do {
                try await opened
                Issue.record("the stream was opened")
            } catch let error as DialError { #expect(error.reason == .forbidden) }
            #expect(table.streams.statistics.failures == ["forbidden": 1])
        }
    }

    @Test func `a failed dial throws its reason, and the client is never asked for`() async throws {
        fixture.resolver.set(.failure(DialError(.deviceAbsent, "the phone is not attached")))
        try await withTable(FakeDialer.silent()) { table in
            let error = await #expect(throws: DialError.self) {
                try await withStream(of: table) { _, _ in Issue.record("there is no stream") }
            }
            #expect(error?.reason == .deviceAbsent)
            #expect(table.streams.statistics.failures == ["deviceAbsent": 1])
            #expect(table.streams.statistics.open == 0)
        }
    }

    @Test func `a cancelled dial leaves no place of the limit taken`() async throws {
        let dialer = FakeDialer.silent()
        fixture.resolver.set(.success([network]))
        let table = try await fixture.table(dialer, limits: TunnelLimits(connections: 1))
        try await fixture.running(table) {
            for _ in 0..<2 {
                await withThrowingTaskGroup(of: Void.self) { group in
                    group.addTask { try await withStream(of: table) { _, _ in } }
                    for await _ in dialer.begun.stream { break }
                    group.cancelAll()
                    await #expect(throws: CancellationError.self) { try await group.next() }
                }
            }
            #expect(table.streams.statistics.open == 0 && table.streams.statistics.failures.isEmpty)
        }
    }

    @Test func `streams count towards the limit of connections`() async throws {
        fixture.resolver.set(.success([network]))
        let table = try await fixture.table(FakeDialer.connected(), limits: TunnelLimits(connections: 1))
        try await fixture.running(table) {
            try await withStream(of: table) { client, stream in
                let error = await #expect(throws: DialError.self) { try await withStream(of: table) { _, _ in } }
                #expect(error?.reason == .limit)
                await stream.close()
            }
        }
    }
}

import FoundationEssentials
import Glibc
import Logging
import Model
import ServiceLifecycle
import Sockets
import Testing
import Tunnels

@Suite(.serialized, .timeLimit(.minutes(2)))
struct TunnelTableTests {
    private let resolver = FakeResolver()
    private let target = TunnelTarget.device(udid: Self.udid, port: 8_765)
    private static let udid = UDID("00008030-001A2B3C4D5E6F70").unsafelyUnwrapped

    private func table(
        _ dialer: any Dialer = LANDialer(),
        store: TunnelStore? = nil,
        limits: TunnelLimits = TunnelLimits(retry: .milliseconds(20))
    ) async -> TunnelTable {
        await TunnelTable(
            resolver: resolver,
            dialer: dialer,
            store: store,
            limits: limits,
            idle: .milliseconds(150),
            logger: Self.quiet
        )
    }

    private static let quiet = Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })

    /// Runs a table beside a test and stops it afterwards as SIGTERM would.
    private func running(_ table: TunnelTable, _ body: () async throws -> Void) async throws {
        let group = ServiceGroup(services: [table], logger: Self.quiet)
        async let ended: Void = group.run()
        do {
            try await body()
        } catch {
            await group.triggerGracefulShutdown()
            throw error
        }
        await group.triggerGracefulShutdown()
        try await ended
    }

    private func address(_ tunnel: Tunnel) throws -> SocketAddress {
        switch try #require(tunnel.bound.first) {
        case .tcp(let host, let port): try #require(SocketAddress(numeric: host ?? "127.0.0.1", port: port))
        case .unix(let path): .unix(path: path)
        }
    }

    private static func host(_ local: LocalAddress) -> String? {
        guard case .tcp(let host, _) = local else { return nil }
        return host
    }

    private static func port(_ local: LocalAddress) -> UInt16 {
        guard case .tcp(_, let port) = local else { return 0 }
        return port
    }

    private func spec(
        _ local: LocalAddress = .tcp(host: nil, port: 0),
        port: UInt16 = 8_765,
        noRebind: Bool = false
    ) -> TunnelSpec {
        TunnelSpec(local: local, target: .device(udid: Self.udid, port: port), noRebind: noRebind)
    }

    @Test func `a tunnel leads to its target and counts what it carries`() async throws {
        let echo = try EchoServer()
        resolver.set(.success([echo.route]))
        let table = await table()
        try await running(table) {
            async let _: Void = echo.run()
            let tunnel = try await table.create(spec())
            #expect(tunnel.state == .active)
            let client = try await Stream.connect(to: try address(tunnel))

            try await client.send(pattern(500_000))
            client.finish()

            #expect(try await client.receiveToEnd() == pattern(500_000))
            #expect(try await eventually { await table.list().first?.statistics.open == 0 })
            let statistics = try #require(await table.list().first?.statistics)
            #expect(statistics.bytesUp == 500_000 && statistics.bytesDown == 500_000)
            #expect(statistics.connections == 1 && statistics.failures.isEmpty)
            #expect(statistics.lastConnectMilliseconds != nil)
        }
    }

    /// With 1,000, and on how many threads: `LoadTests`; this process has other tests that count descriptors.
    @Test func `200 connections at once are all intact`() async throws {
        try DescriptorLimit.raise()
        let echo = try EchoServer()
        resolver.set(.success([echo.route]))
        let table = await table()
        try await running(table) {
            async let _: Void = echo.run()
            let tunnel = try await table.create(spec())
            let address = try address(tunnel)

            try await withThrowingTaskGroup(of: Bool.self) { group in
                for seed in 0..<200 {
                    group.addTask {
                        let client = try await Stream.connect(to: address)
                        let bytes = pattern(65_536, seed: UInt64(seed))
                        try await client.send(bytes)
                        guard try await client.receive(bytes.count) == bytes else { return false }
                        // Stays open until all have been there.
                        return try await eventually { await table.list().first?.statistics.connections == 200 }
                    }
                }
                for try await isIntact in group { #expect(isIntact) }
            }

            #expect(try #require(await table.list().first).statistics.failures.isEmpty)
        }
    }

    @Test func `tcp 0 is one port on both loopback addresses`() async throws {
        let table = await table()
        try await running(table) {
            let tunnel = try await table.create(spec())

            let hosts = tunnel.bound.map(Self.host)
            let ports = Set(tunnel.bound.map(Self.port))

            #expect(hosts.first == "127.0.0.1")
            #expect(hosts.count == 1 || hosts == ["127.0.0.1", "::1"])
            #expect(ports.count == 1 && !ports.contains(0))
        }
    }

    @Test func `a target that cannot be dialled resets the client and is counted by reason`() async throws {
        let closed = try Listener(on: .ipv4(INADDR_LOOPBACK, port: 0))
        resolver.set(.success([.lan(LANRoute(address: "127.0.0.1", port: closed.address.port ?? 0))]))
        closed.close()
        let table = await table()
        try await running(table) {
            let tunnel = try await table.create(spec())
            var events = await table.events().makeAsyncIterator()

            let bound = try address(tunnel)
            #expect(await Stream.isReset(by: bound))

            guard case .connectionFailed(tunnel.id, let failure) = await events.next() else {
                Issue.record("no failure was told")
                return
            }
            #expect(failure.reason == .refused)
            #expect(await table.list().first?.statistics.failures == ["refused": 1])
            // The route is still there, so the tunnel's state is what it was.
            #expect(await table.list().first?.state == .active)
        }
    }

    @Test func `the next route is tried when the best one fails`() async throws {
        let echo = try EchoServer()
        resolver.set(.success([.usb(USBRoute(udid: Self.udid, port: 1)), echo.route]))
        let table = await table()
        try await running(table) {
            async let _: Void = echo.run()
            let client = try await Stream.connect(to: try address(try await table.create(spec())))

            try await client.send([7])

            #expect(try await client.receive(1) == [7])
        }
    }

    @Test func `the state follows the target`() async throws {
        resolver.set(.failure(DialFailure(.deviceAbsent, "it is not plugged in")))
        let table = await table()
        try await running(table) {
            let tunnel = try await table.create(spec())
            #expect(tunnel.state == .waiting(reason: "it is not plugged in"))
            var events = await table.events().makeAsyncIterator()

            resolver.set(.success([.usb(USBRoute(udid: Self.udid, port: 1))]))
            await table.reconsider()
            #expect(await table.list().first?.state == .active)
            guard case .changed(let changed) = await events.next() else {
                Issue.record("no change was told")
                return
            }
            #expect(changed.state == .active)

            // A dial that finds the device gone says so at once, without being asked.
            let bound = try address(tunnel)
            #expect(await Stream.isReset(by: bound))
            #expect(try await eventually { await table.list().first?.state.name == "waiting" })
        }
    }

    @Test func `the same address again replaces the tunnel, unless asked not to`() async throws {
        let table = await table()
        try await running(table) {
            let first = try await table.create(spec())
            guard case .tcp(_, let port)? = first.bound.first else { return }
            let local = LocalAddress.tcp(host: nil, port: port)

            await #expect(throws: TunnelError.taken(local, by: first.id)) {
                try await table.create(spec(local, noRebind: true))
            }
            let second = try await table.create(spec(local, port: 9_999))
            let third = try await table.create(spec(local, port: 9_999))

            #expect(second.id != first.id)
            #expect(third.id == second.id)
            #expect(await table.list().map(\.id) == [second.id])
        }
    }

    @Test func `an address that overlaps a tunnel's names that tunnel`() async throws {
        let table = await table()
        try await running(table) {
            let first = try await table.create(spec())
            guard case .tcp(_, let port)? = first.bound.first else { return }
            let local = LocalAddress.tcp(host: "127.0.0.1", port: port)

            await #expect(throws: TunnelError.taken(local, by: first.id)) { try await table.create(spec(local)) }
        }
    }

    @Test func `a port of another program is refused with the next step`() async throws {
        let stranger = try Listener(on: .ipv4(INADDR_LOOPBACK, port: 0))
        let local = LocalAddress.tcp(host: nil, port: stranger.address.port ?? 0)
        let table = await table()
        try await running(table) {
            let error = await #expect(throws: TunnelError.self) { try await table.create(spec(local)) }

            #expect(error == .inUse(local))
            #expect(error?.description.contains("ss -ltnp") == true)
            #expect(await table.list().isEmpty)
        }
        withExtendedLifetime(stranger) {}
    }

    @Test func `a unix socket is for its owner alone and goes with its tunnel`() async throws {
        let echo = try EchoServer()
        resolver.set(.success([echo.route]))
        let scratch = Scratch()
        let path = "\(scratch.path)/tunnel.sock"
        let table = await table()
        try await running(table) {
            async let _: Void = echo.run()
            let tunnel = try await table.create(spec(.unix(path: path)))
            var status = stat()
            #expect(lstat(path, &status) == 0)
            #expect(status.st_mode & 0o777 == 0o600)
            let client = try await Stream.connect(to: try address(tunnel))
            try await client.send([1, 2])
            #expect(try await client.receive(2) == [1, 2])

            try await table.remove(tunnel.id)

            #expect(lstat(path, &status) != 0)
            #expect(try await client.receiveSome().isEmpty)
        }
    }

    @Test func `removing a tunnel cuts its connections and frees its address`() async throws {
        let echo = try EchoServer()
        resolver.set(.success([echo.route]))
        let table = await table()
        try await running(table) {
            async let _: Void = echo.run()
            let tunnel = try await table.create(spec())
            let address = try address(tunnel)
            let client = try await Stream.connect(to: address)
            try await client.send([1])
            _ = try await client.receive(1)

            try await table.remove(tunnel.id)

            await #expect(throws: Stream.Failure(code: ECONNRESET)) { try await client.receiveSome() }
            _ = try Listener(on: address)
            await #expect(throws: TunnelError.noSuchTunnel(tunnel.id)) { try await table.remove(tunnel.id) }
        }
    }

    @Test func `a client that goes away ends the dial for it`() async throws {
        let dialer = SilentDialer()
        resolver.set(.success([.usb(USBRoute(udid: Self.udid, port: 1))]))
        let table = await table(dialer)
        try await running(table) {
            let tunnel = try await table.create(spec())
            var client: Stream? = try await Stream.connect(to: try address(tunnel))
            for await _ in dialer.begun.stream { break }

            client?.makeAbortive()
            client = nil

            for await _ in dialer.ended.stream { break }
            #expect(try await eventually { await table.list().first?.statistics.open == 0 })
            #expect(await table.list().first?.statistics.failures.isEmpty == true)
            _ = client
        }
    }

    @Test func `one connection too many is reset and counted`() async throws {
        let echo = try EchoServer()
        resolver.set(.success([echo.route]))
        let table = await table(limits: TunnelLimits(connections: 2))
        try await running(table) {
            async let _: Void = echo.run()
            let tunnel = try await table.create(spec())
            let address = try address(tunnel)
            var clients: [Stream] = []
            for _ in 0..<2 {
                let client = try await Stream.connect(to: address)
                try await client.send([1])
                _ = try await client.receive(1)
                clients.append(client)
            }

            #expect(await Stream.isReset(by: address))
            #expect(await table.list().first?.statistics.failures == ["limit": 1])

            clients.removeLast()
            #expect(try await eventually { await table.list().first?.statistics.open == 1 })
            let fourth = try await Stream.connect(to: address)
            try await fourth.send([1])
            #expect(try await fourth.receive(1) == [1])
        }
    }

    @Test func `more clients than dials at once wait in the queue and are all served`() async throws {
        let echo = try EchoServer()
        resolver.set(.success([echo.route]))
        let table = await table(limits: TunnelLimits(dials: 2))
        try await running(table) {
            async let _: Void = echo.run()
            let address = try address(try await table.create(spec()))

            try await withThrowingTaskGroup(of: [UInt8].self) { group in
                for _ in 0..<50 {
                    group.addTask {
                        let client = try await Stream.connect(to: address)
                        try await client.send([9])
                        return try await client.receive(1)
                    }
                }
                for try await answer in group { #expect(answer == [9]) }
            }
        }
    }

    @Test func `tunnels stand again after a restart, with their ids and ports`() async throws {
        let scratch = Scratch()
        var kept: [Tunnel] = []
        let first = await table(store: TunnelStore(directory: scratch.path, logger: Self.quiet))
        try await running(first) {
            _ = try await first.create(spec())
            let gone = try await first.create(spec())
            try await first.remove(gone.id)
            _ = try await first.create(spec(.unix(path: "\(scratch.path)/tunnel.sock")))
            _ = try await first.hold([spec()])
            kept = await first.list().filter(\.spec.isKept)
        }

        let second = await table(store: TunnelStore(directory: scratch.path, logger: Self.quiet))
        try await running(second) {
            let restored = await second.list()
            #expect(restored.map(\.id) == kept.map(\.id))
            #expect(restored.map(\.spec) == kept.map(\.spec))
            #expect(restored.map(\.bound) == kept.map(\.bound))
            let new = try await second.create(spec())
            #expect(new.id == "t5")
        }
    }

    @Test func `a port that is taken at restart is had again as soon as it is free`() async throws {
        let scratch = Scratch()
        var bound: [LocalAddress] = []
        let first = await table(store: TunnelStore(directory: scratch.path, logger: Self.quiet))
        try await running(first) { bound = try await first.create(spec()).bound }
        guard case .tcp(_, let port)? = bound.first else { return }
        let stranger = try Listener(on: .ipv4(INADDR_LOOPBACK, port: port))

        let second = await table(store: TunnelStore(directory: scratch.path, logger: Self.quiet))
        try await running(second) {
            #expect(await second.list().first?.state.name == "failed")
            #expect(await second.list().first?.state.reason?.contains("\(port)") == true)
            stranger.close()

            let isBack = try await eventually { await second.list().first?.bound == bound }
            #expect(isBack)
        }
    }

    @Test func `a state file that cannot be read is set aside and stops nothing`() async throws {
        let scratch = Scratch()
        let file = "\(scratch.path)/tunnels.json"
        let broken = Data(#"{"schema":1,"tunnels":[{"id":"t41","spec":"#.utf8)
        try broken.write(to: URL(filePath: file))

        let table = await table(store: TunnelStore(directory: scratch.path, logger: Self.quiet))
        try await running(table) {
            #expect(await table.list().isEmpty)
            let new = try await table.create(spec())
            #expect(new.id == "t42")
            #expect(try Data(contentsOf: URL(filePath: file + ".unreadable")) == broken)
        }
    }

    @Test func `what cannot be kept is not made`() async throws {
        let scratch = Scratch()
        let table = await table(store: TunnelStore(directory: scratch.path + "/missing", logger: Self.quiet))
        try await running(table) {
            let error = await #expect(throws: TunnelError.self) { try await table.create(spec()) }

            guard case .notSaved = error else {
                Issue.record("the error is \(String(describing: error))")
                return
            }
            #expect(await table.list().isEmpty)
        }
    }

    @Test func `held tunnels are all made or none, replace nothing, and go when released`() async throws {
        let table = await table()
        try await running(table) {
            let standing = try await table.create(spec())
            guard case .tcp(_, let port)? = standing.bound.first else { return }
            let taken = spec(.tcp(host: nil, port: port), port: 1)

            await #expect(throws: TunnelError.self) { try await table.hold([spec(), taken, spec()]) }
            #expect(await table.list() == [standing])
            let held = try await table.hold([spec(), spec()])
            #expect(held.count == 2 && held.allSatisfy { !$0.spec.isKept })

            await table.release(Set(held.map(\.id) + [standing.id, "t999"]))
            #expect(await table.list().map(\.id) == [standing.id])
        }
    }

    @Test func `port 0 of a device is no target`() async throws {
        let table = await table()
        try await running(table) {
            await #expect(throws: TunnelError.self) { try await table.create(spec(port: 0)) }
        }
    }

    @Test func `the stop ends busy connections and pending dials within a second`() async throws {
        let dialer = SilentDialer()
        resolver.set(.success([.usb(USBRoute(udid: Self.udid, port: 1))]))
        let table = await table(dialer)
        var client: Stream?
        var began = ContinuousClock.now
        try await running(table) {
            client = try await Stream.connect(to: try address(try await table.create(spec())))
            for await _ in dialer.begun.stream { break }
            began = .now
        }

        #expect(ContinuousClock.now - began < .seconds(1))
        await #expect(throws: Stream.Failure(code: ECONNRESET)) { try await client?.receiveSome() }
        await #expect(throws: TunnelError.stopping) { try await table.create(spec()) }
    }

    @Test func `100 starts and stops leave no descriptor and no thread behind`() async throws {
        let echo = try EchoServer()
        resolver.set(.success([echo.route]))
        let serving = Task { await echo.run() }
        try await cycle()
        let before = (try ThisProcess.descriptors(), try ThisProcess.threads())

        for _ in 0..<100 { try await cycle() }

        #expect(try await eventually { try ThisProcess.descriptors() <= before.0 })
        #expect(try await eventually { try ThisProcess.threads() <= before.1 })
        serving.cancel()
    }

    private func cycle() async throws {
        let table = await table()
        try await running(table) {
            let client = try await Stream.connect(to: try address(try await table.create(spec())))
            try await client.send([1])
            #expect(try await client.receive(1) == [1])
        }
    }
}

import FoundationEssentials
import Glibc
import Logging
import Model
import ServiceLifecycle
import SystemIO
import Testing
import Tunnels

/// What outlives what: a restart, a removal, a stop.
@Suite(.serialized, .timeLimit(.minutes(2)))
struct TunnelLifeTests {
    private let bench = TableBench()

    @Test func `200 connections at once are all intact`() async throws {
        try FileDescriptorLimit.raise()
        let echo = try EchoServer()
        bench.resolver.set(.success([echo.route]))
        let table = try await bench.table()
        try await bench.running(table) {
            async let _: Void = echo.run()
            let tunnel = try await table.create(bench.spec())
            let address = try bench.address(tunnel)

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

    @Test func `removing a tunnel cuts its connections and frees its address`() async throws {
        let echo = try EchoServer()
        bench.resolver.set(.success([echo.route]))
        let table = try await bench.table()
        try await bench.running(table) {
            async let _: Void = echo.run()
            let tunnel = try await table.create(bench.spec())
            let address = try bench.address(tunnel)
            let client = try await Stream.connect(to: address)
            try await client.send([1])
            _ = try await client.receive(1)

            try await table.remove(tunnel.id)

            await #expect(throws: Stream.Failure(code: ECONNRESET)) { try await client.receiveSome() }
            _ = try Listener(on: address)
            await #expect(throws: TunnelError.noSuchTunnel(tunnel.id)) { try await table.remove(tunnel.id) }
        }
    }

    @Test func `tunnels stand again after a restart, with their ids and ports`() async throws {
        let scratch = Scratch()
        var kept: [Tunnel] = []
        let first = try await bench.table(store: TunnelStore(directory: scratch.path, logger: TableBench.quiet))
        try await bench.running(first) {
            _ = try await first.create(bench.spec())
            let gone = try await first.create(bench.spec())
            try await first.remove(gone.id)
            _ = try await first.create(bench.spec(.unix(path: "\(scratch.path)/tunnel.sock")))
            _ = try await first.hold([bench.spec()])
            kept = await first.list().filter(\.spec.isKept)
        }

        let second = try await bench.table(store: TunnelStore(directory: scratch.path, logger: TableBench.quiet))
        try await bench.running(second) {
            let restored = await second.list()
            #expect(restored.map(\.id) == kept.map(\.id))
            #expect(restored.map(\.spec) == kept.map(\.spec))
            #expect(restored.map(\.bound) == kept.map(\.bound))
            let new = try await second.create(bench.spec())
            #expect(new.id == "t5")
        }
    }

    @Test func `a port that is taken at restart is had again as soon as it is free`() async throws {
        let scratch = Scratch()
        var bound: [ListenAddress] = []
        let first = try await bench.table(store: TunnelStore(directory: scratch.path, logger: TableBench.quiet))
        try await bench.running(first) { bound = try await first.create(bench.spec()).bound }
        guard case .tcp(_, let port)? = bound.first else { return }
        let stranger = try Listener(on: .ipv4(INADDR_LOOPBACK, port: port))

        let second = try await bench.table(store: TunnelStore(directory: scratch.path, logger: TableBench.quiet))
        try await bench.running(second) {
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
        let broken = Data(#"{"schema":1,"content":{"tunnels":[{"id":"t41","spec":"#.utf8)
        try broken.write(to: URL(filePath: file))

        let table = try await bench.table(store: TunnelStore(directory: scratch.path, logger: TableBench.quiet))
        try await bench.running(table) {
            #expect(await table.list().isEmpty)
            let new = try await table.create(bench.spec())
            #expect(new.id == "t42")
            #expect(try Data(contentsOf: URL(filePath: file + ".unreadable")) == broken)
        }
    }

    @Test func `what cannot be kept is not made`() async throws {
        let scratch = Scratch()
        let table = try await bench.table(
            store: TunnelStore(directory: scratch.path + "/missing", logger: TableBench.quiet)
        )
        try await bench.running(table) {
            let error = await #expect(throws: TunnelError.self) { try await table.create(bench.spec()) }

            guard case .notSaved = error else {
                Issue.record("the error is \(String(describing: error))")
                return
            }
            #expect(await table.list().isEmpty)
        }
    }

    @Test func `held tunnels are all made or none, replace nothing, and go when released`() async throws {
        let table = try await bench.table()
        try await bench.running(table) {
            let standing = try await table.create(bench.spec())
            guard case .tcp(_, let port)? = standing.bound.first else { return }
            let taken = bench.spec(.tcp(host: nil, port: port), port: 1)

            await #expect(throws: TunnelError.self) { try await table.hold([bench.spec(), taken, bench.spec()]) }
            #expect(await table.list() == [standing])
            let held = try await table.hold([bench.spec(), bench.spec()])
            #expect(held.count == 2 && held.allSatisfy { !$0.spec.isKept })

            await table.release(Set(held.map(\.id) + [standing.id, "t999"]))
            #expect(await table.list().map(\.id) == [standing.id])
        }
    }

    @Test func `a listening socket that takes no clients is shown as failed with the reason, and tried again`()
        async throws
    {
        let echo = try EchoServer()
        bench.resolver.set(.success([echo.route]))
        let table = try await bench.table(limits: TunnelLimits(longestPause: .milliseconds(50)))
        try await bench.running(table) {
            async let _: Void = echo.run()
            // A port that was asked for stays the socket's after shutdown(2); one that the kernel chose does not.
            let free = try await table.create(bench.spec())
            let port = TableBench.port(try #require(free.bound.first))
            try await table.remove(free.id)
            let address = try bench.address(
                try await table.create(bench.spec(.tcp(host: "127.0.0.1", port: port)))
            )
            let listener = try #require((3..<1_024).map(CInt.init).first { SocketAddress.local(of: $0) == address })

            let events = await table.events()
            // accept(2) fails with EINVAL from here on, until it listens again.
            #expect(shutdown(listener, CInt(SHUT_RDWR)) == 0)
            var reason: String?
            for await event in events {
                guard case .changed(let tunnel) = event, case .failed(let why) = tunnel.state else { continue }
                reason = why
                break
            }
            #expect(reason?.contains("takes no clients") == true)
            await table.reconsider()
            #expect(await table.list().first?.state == .failed(reason: reason ?? ""))

            #expect(listen(listener, 16) == 0)
            let client = try await Stream.connect(to: address)
            try await client.send([1, 2, 3])
            #expect(try await client.receive(3) == [1, 2, 3])
            #expect(await table.list().first?.state == .active)
        }
    }

    @Test func `the stop ends busy connections and pending dials within a second`() async throws {
        let dialer = SilentDialer()
        bench.resolver.set(.success([.usb(USBRoute(udid: TableBench.udid, port: 1))]))
        let table = try await bench.table(dialer)
        var client: Stream?
        var began = ContinuousClock.now
        try await bench.running(table) {
            client = try await Stream.connect(to: try bench.address(try await table.create(bench.spec())))
            for await _ in dialer.begun.stream { break }
            began = .now
        }

        #expect(ContinuousClock.now - began < .seconds(1))
        await #expect(throws: Stream.Failure(code: ECONNRESET)) { try await client?.receiveSome() }
        await #expect(throws: TunnelError.stopping) { try await table.create(bench.spec()) }
    }

    @Test func `100 starts and stops leave no descriptor and no thread behind`() async throws {
        let echo = try EchoServer()
        bench.resolver.set(.success([echo.route]))
        let serving = Task { await echo.run() }
        try await cycle()
        let before = (try ThisProcess.descriptors(), try ThisProcess.threads())

        for _ in 0..<100 { try await cycle() }

        #expect(try await eventually { try ThisProcess.descriptors() <= before.0 })
        #expect(try await eventually { try ThisProcess.threads() <= before.1 })
        serving.cancel()
    }

    private func cycle() async throws {
        let table = try await bench.table()
        try await bench.running(table) {
            let client = try await Stream.connect(to: try bench.address(try await table.create(bench.spec())))
            try await client.send([1])
            #expect(try await client.receive(1) == [1])
        }
    }
}

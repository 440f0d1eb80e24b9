import FoundationEssentials
import Glibc
import Logging
import Model
import ServiceLifecycle
import SystemIO
import Testing
import Tunnels

@Suite(.serialized, .timeLimit(.minutes(2)))
struct TunnelTableTests {
    private let bench = TableBench()

    @Test func `a tunnel leads to its target and counts what it carries`() async throws {
        let echo = try EchoServer()
        bench.resolver.set(.success([echo.route]))
        let table = try await bench.table()
        try await bench.running(table) {
            async let _: Void = echo.run()
            let tunnel = try await table.create(bench.spec())
            #expect(tunnel.state == .active)
            let client = try await Stream.connect(to: try bench.address(tunnel))

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

    @Test func `several tunnels are made and replaced together, or everything stays as it was`() async throws {
        let table = try await bench.table()
        try await bench.running(table) {
            let blocker = try Listener(on: .ipv4(INADDR_LOOPBACK, port: 0))
            let taken = bench.spec(.tcp(host: "127.0.0.1", port: blocker.address.port ?? 0))
            let first = try await table.create([bench.spec(), bench.spec()])
            let local = ListenAddress.tcp(host: nil, port: TableBench.port(try #require(first.first?.bound.first)))
            let old = try await table.create(bench.spec(local, port: 1))
            let before = await table.list()

            let wanted = [bench.spec(), bench.spec(local, port: 2), taken]
            await #expect(throws: TunnelError.self) { try await table.create(wanted) }
            await #expect(throws: TunnelError.self) {
                try await table.create([bench.spec(local, port: 2), bench.spec(local, port: 3)])
            }
            #expect(await table.list() == before)

            let made = try await table.create([bench.spec(), bench.spec(local, port: 2)])
            #expect(made.map(\.replaced) == [nil, old.id])
            #expect(Set(made.map(\.id)).count == 2 && made.allSatisfy { !$0.bound.isEmpty })
            let ids = await table.list().map(\.id)
            #expect(!ids.contains(old.id) && ids.count == before.count + 1)
            blocker.close()
        }
    }

    /// With 1,000, and on how many threads: `LoadTests`; this process has other tests that count descriptors.
    @Test func `tcp 0 is one port on both loopback addresses`() async throws {
        let table = try await bench.table()
        try await bench.running(table) {
            let tunnel = try await table.create(bench.spec())

            let hosts = tunnel.bound.map(TableBench.host)
            let ports = Set(tunnel.bound.map(TableBench.port))

            #expect(hosts.first == "127.0.0.1")
            #expect(hosts.count == 1 || hosts == ["127.0.0.1", "::1"])
            #expect(ports.count == 1 && !ports.contains(0))
        }
    }

    @Test func `a target that cannot be dialled resets the client and is counted by reason`() async throws {
        let closed = try Listener(on: .ipv4(INADDR_LOOPBACK, port: 0))
        bench.resolver.set(.success([.lan(LANRoute(address: "127.0.0.1", port: closed.address.port ?? 0))]))
        closed.close()
        let table = try await bench.table()
        try await bench.running(table) {
            let tunnel = try await table.create(bench.spec())
            var events = await table.events().makeAsyncIterator()

            let bound = try bench.address(tunnel)
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
        bench.resolver.set(.success([.usb(USBRoute(udid: TableBench.udid, port: 1)), echo.route]))
        let table = try await bench.table()
        try await bench.running(table) {
            async let _: Void = echo.run()
            let client = try await Stream.connect(to: try bench.address(try await table.create(bench.spec())))

            try await client.send([7])

            #expect(try await client.receive(1) == [7])
        }
    }

    @Test func `the state follows the target`() async throws {
        bench.resolver.set(.failure(DialError(.deviceAbsent, "it is not plugged in")))
        let table = try await bench.table()
        try await bench.running(table) {
            let tunnel = try await table.create(bench.spec())
            #expect(tunnel.state == .waiting(reason: "it is not plugged in"))
            var events = await table.events().makeAsyncIterator()

            bench.resolver.set(.success([.usb(USBRoute(udid: TableBench.udid, port: 1))]))
            await table.reconsider()
            #expect(await table.list().first?.state == .active)
            guard case .changed(let changed) = await events.next() else {
                Issue.record("no change was told")
                return
            }
            #expect(changed.state == .active)

            // A dial that finds the device gone says so at once, without being asked.
            let bound = try bench.address(tunnel)
            #expect(await Stream.isReset(by: bound))
            #expect(try await eventually { await table.list().first?.state.name == "waiting" })
        }
    }

    @Test func `the same address again replaces the tunnel, unless asked not to`() async throws {
        let table = try await bench.table()
        try await bench.running(table) {
            let first = try await table.create(bench.spec())
            guard case .tcp(_, let port)? = first.bound.first else { return }
            let local = ListenAddress.tcp(host: nil, port: port)

            await #expect(throws: TunnelError.taken(local, by: first.id)) {
                try await table.create(bench.spec(local, noRebind: true))
            }
            let second = try await table.create(bench.spec(local, port: 9_999))
            let third = try await table.create(bench.spec(local, port: 9_999))

            #expect(second.id != first.id)
            #expect(third.id == second.id)
            #expect([first.replaced, second.replaced, third.replaced] == [nil, first.id, nil])
            #expect(await table.list().map(\.id) == [second.id])
            #expect(await table.list().first?.replaced == nil)
        }
    }

    @Test func `an address that overlaps a tunnel's names that tunnel`() async throws {
        let table = try await bench.table()
        try await bench.running(table) {
            let first = try await table.create(bench.spec())
            guard case .tcp(_, let port)? = first.bound.first else { return }
            let local = ListenAddress.tcp(host: "127.0.0.1", port: port)

            await #expect(throws: TunnelError.taken(local, by: first.id)) { try await table.create(bench.spec(local)) }
        }
    }

    @Test func `a port of another program is refused with the next step`() async throws {
        let stranger = try Listener(on: .ipv4(INADDR_LOOPBACK, port: 0))
        let local = ListenAddress.tcp(host: nil, port: stranger.address.port ?? 0)
        let table = try await bench.table()
        try await bench.running(table) {
            let error = await #expect(throws: TunnelError.self) { try await table.create(bench.spec(local)) }

            #expect(error == .inUse(local))
            #expect(error?.description.contains("ss -ltnp") == true)
            #expect(await table.list().isEmpty)
        }
        withExtendedLifetime(stranger) {}
    }

    @Test func `a unix socket is for its owner alone and goes with its tunnel`() async throws {
        let echo = try EchoServer()
        bench.resolver.set(.success([echo.route]))
        let scratch = Scratch()
        let path = "\(scratch.path)/tunnel.sock"
        let table = try await bench.table()
        try await bench.running(table) {
            async let _: Void = echo.run()
            let tunnel = try await table.create(bench.spec(.unix(path: path)))
            var status = stat()
            #expect(lstat(path, &status) == 0)
            #expect(status.st_mode & 0o777 == 0o600)
            let client = try await Stream.connect(to: try bench.address(tunnel))
            try await client.send([1, 2])
            #expect(try await client.receive(2) == [1, 2])

            try await table.remove(tunnel.id)

            #expect(lstat(path, &status) != 0)
            #expect(try await client.receiveSome().isEmpty)
        }
    }

    @Test func `a client that goes away ends the dial for it`() async throws {
        let dialer = SilentDialer()
        bench.resolver.set(.success([.usb(USBRoute(udid: TableBench.udid, port: 1))]))
        let table = try await bench.table(dialer)
        try await bench.running(table) {
            let tunnel = try await table.create(bench.spec())
            var client: Stream? = try await Stream.connect(to: try bench.address(tunnel))
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
        bench.resolver.set(.success([echo.route]))
        let table = try await bench.table(limits: TunnelLimits(connections: 2))
        try await bench.running(table) {
            async let _: Void = echo.run()
            let tunnel = try await table.create(bench.spec())
            let address = try bench.address(tunnel)
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
        bench.resolver.set(.success([echo.route]))
        let table = try await bench.table(limits: TunnelLimits(dials: 2))
        try await bench.running(table) {
            async let _: Void = echo.run()
            let address = try bench.address(try await table.create(bench.spec()))

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

    @Test func `port 0 of a device is no target`() async throws {
        let table = try await bench.table()
        try await bench.running(table) {
            await #expect(throws: TunnelError.self) { try await table.create(bench.spec(port: 0)) }
        }
    }
}

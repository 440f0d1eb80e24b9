import FoundationEssentials
import Glibc
import Model
import Synchronization
import SystemIO
import TestSupport
import Testing
import Tunnels

@Suite(.serialized, .timeLimit(.minutes(2)))
struct TunnelTableTests {
    private let fixture = TunnelTableFixture()

    @Test func `a tunnel forwards to its target and counts the bytes`() async throws {
        let echo = try EchoServer()
        fixture.resolver.set(.success([echo.route]))
        let table = try await fixture.table()
        try await fixture.running(table) {
            defer { echo.stop() }
            let tunnel = try await table.create(fixture.spec())
            #expect(tunnel.state == .active)
            let client = try await SocketStream.connect(to: try fixture.address(tunnel))

            try await client.send(Pattern.bytes(0..<500_000))
            client.finish()

            #expect(try await client.receiveToEnd() == Pattern.bytes(0..<500_000))
            try await eventually("the connection is closed") { await table.list().first?.statistics.open == 0 }
            let statistics = try #require(await table.list().first?.statistics)
            #expect(statistics.bytesUp == 500_000 && statistics.bytesDown == 500_000)
            #expect(statistics.connections == 1 && statistics.failures.isEmpty)
            #expect(statistics.lastConnectMilliseconds != nil)
        }
    }

    @Test func `several tunnels are created and replaced together, or none is changed`() async throws {
        let table = try await fixture.table()
        try await fixture.running(table) {
            let blocker = try Listener(on: .ipv4(INADDR_LOOPBACK, port: 0))
            let taken = fixture.spec(.tcp(host: "127.0.0.1", port: blocker.address.port ?? 0))
            let first = try await table.create([fixture.spec(), fixture.spec()])
            let local = ListenAddress.tcp(
                host: nil,
                port: TunnelTableFixture.port(try #require(first.first?.listenAddresses.first))
            )
            let old = try await table.create(fixture.spec(local, port: 1))
            let before = await table.list()

            let wanted = [fixture.spec(), fixture.spec(local, port: 2), taken]
            await #expect(throws: TunnelError.self) { try await table.create(wanted) }
            await #expect(throws: TunnelError.self) {
                try await table.create([fixture.spec(local, port: 2), fixture.spec(local, port: 3)])
            }
            #expect(await table.list() == before)

            let made = try await table.create([fixture.spec(), fixture.spec(local, port: 2)])
            #expect(made.map(\.replaced) == [nil, old.id])
            #expect(Set(made.map(\.id)).count == 2 && made.allSatisfy { !$0.listenAddresses.isEmpty })
            let ids = await table.list().map(\.id)
            #expect(!ids.contains(old.id) && ids.count == before.count + 1)
            blocker.close()
        }
    }

    /// `LoadTests` checks 1,000 tunnels and the number of threads, because other tests of this process count
    /// descriptors.
    @Test func `tcp 0 opens the same port on both loopback addresses`() async throws {
        let table = try await fixture.table()
        try await fixture.running(table) {
            let tunnel = try await table.create(fixture.spec())

            let hosts = tunnel.listenAddresses.map(TunnelTableFixture.host)
            let ports = Set(tunnel.listenAddresses.map(TunnelTableFixture.port))

            #expect(hosts.first == "127.0.0.1")
            #expect(hosts.count == 1 || hosts == ["127.0.0.1", "::1"])
            #expect(ports.count == 1 && !ports.contains(0))
        }
    }

    @Test func `a failed dial resets the client and is counted by reason`() async throws {
        let closed = try Listener(on: .ipv4(INADDR_LOOPBACK, port: 0))
        fixture.resolver.set(.success([.network(NetworkRoute(address: "127.0.0.1", port: closed.address.port ?? 0))]))
        closed.close()
        let table = try await fixture.table()
        try await fixture.running(table) {
            let tunnel = try await table.create(fixture.spec())
            var events = await table.events().makeAsyncIterator()

            let bound = try fixture.address(tunnel)
            #expect(await SocketStream.isReset(by: bound))

            guard case .connectionFailed(tunnel.id, let failure) = await events.next() else {
                Issue.record("no failure was told")
                return
            }
            #expect(failure.reason == .refused)
            #expect(await table.list().first?.statistics.failures == ["refused": 1])
        }
    }

    @Test func `a tunnel says that nothing listens, from its creation to the first connection that works`() async throws
    {
        let port = try FreePorts.take()[0]
        let address = SocketAddress.ipv4(INADDR_LOOPBACK, port: port)
        fixture.resolver.set(.success([.network(NetworkRoute(address: "127.0.0.1", port: port))]))
        let table = try await fixture.table()
        try await fixture.running(table) {
            let tunnel = try await table.create(fixture.spec())
            let refusal = "nothing listens on \(address); start the app there, or check the port"
            #expect(tunnel.state == .waiting(reason: refusal))
            await table.refreshTargets()
            #expect(await table.list().first?.state == .waiting(reason: refusal))

            for _ in 0..<2 {
                let echo = try EchoServer(port: port)
                let client = try await SocketStream.connect(to: try fixture.address(tunnel))
                try await client.send([7])
                #expect(try await client.receive(1) == [7])
                try await eventually("the tunnel is active") { await table.list().first?.state == .active }
                echo.stop()

                #expect(await SocketStream.isReset(by: try fixture.address(tunnel)))
                try await eventually("the tunnel waits") {
                    await table.list().first?.state == .waiting(reason: refusal)
                }
            }
            // The app is at another port.
            let echo = try EchoServer()
            fixture.resolver.set(.success([echo.route]))
            await table.refreshTargets()
            #expect(await table.list().first?.state == .active)
            echo.stop()
        }
    }

    @Test func `a server that nothing else tells about gets one connection without a byte, unless it takes one client`()
        async throws
    {
        for (isAllowed, count) in [(true, 1), (false, 0)] {
            let dials = Mutex(0)
            let refusal = DialError(.refused, "nothing listens there")
            let planner = TrialPlanner(isAllowed: isAllowed) { () throws(DialError) in
                dials.withLock { $0 += 1 }
                throw refusal
            }
            fixture.resolver.set(.success([.usb(USBRoute(udid: TunnelTableFixture.udid, port: 1))]))
            let table = try await fixture.table(planner)
            try await fixture.running(table) {
                let tunnel = try await table.create(fixture.spec())
                #expect(tunnel.state == (isAllowed ? .waiting(reason: "nothing listens there") : .active))
                await table.refreshTargets()
                #expect(dials.withLock { $0 } == count)
            }
        }
    }

    @Test func `the next route is dialed if the best one fails`() async throws {
        let echo = try EchoServer()
        fixture.resolver.set(.success([.usb(USBRoute(udid: TunnelTableFixture.udid, port: 1)), echo.route]))
        let table = try await fixture.table()
        try await fixture.running(table) {
            defer { echo.stop() }
            let client = try await SocketStream.connect(to: try fixture.address(try await table.create(fixture.spec())))

            try await client.send([7])

            #expect(try await client.receive(1) == [7])
        }
    }

    @Test func `the first client after the return of a server is connected, before any probe`() async throws {
        let port = try FreePorts.take()[0]
        fixture.resolver.set(.success([.network(NetworkRoute(address: "127.0.0.1", port: port))]))
        fixture.setAbsence("shop is offline")
        let table = try await fixture.table()
        try await fixture.running(table) {
            let tunnel = try await table.create(fixture.spec())
            #expect(tunnel.state == .waiting(reason: "shop is offline"))
            let bound = try fixture.address(tunnel)
            #expect(await SocketStream.isReset(by: bound))
            #expect(await table.list().first?.state == .waiting(reason: "shop is offline"))
            #expect(await table.list().first?.statistics.failures == ["noRoute": 1])

            let echo = try EchoServer(port: port)
            defer { echo.stop() }
            let client = try await SocketStream.connect(to: bound)
            try await client.send([7])
            #expect(try await client.receive(1) == [7])
            try await eventually("the tunnel is active") { await table.list().first?.state == .active }
        }
    }

    @Test func `a client of a dead machine is reset after 1 s`() async throws {
        let dialer = FakeDialer.silent()
        fixture.resolver.set(.success([.network(NetworkRoute(address: "192.0.2.1", port: 80))]))
        fixture.setAbsence("shop is offline")
        let table = try await fixture.table(dialer)
        try await fixture.running(table) {
            let tunnel = try await table.create(fixture.spec())
            let start = ContinuousClock.now
            #expect(await SocketStream.isReset(by: try fixture.address(tunnel)))
            #expect(ContinuousClock.now - start < .seconds(4))
            #expect(dialer.routes.count == 1)
        }
    }

    @Test func `the tunnel's state follows its target`() async throws {
        fixture.resolver.set(.failure(DialError(.deviceAbsent, "it is not plugged in")))
        let table = try await fixture.table()
        try await fixture.running(table) {
            let tunnel = try await table.create(fixture.spec())
            #expect(tunnel.state == .waiting(reason: "it is not plugged in"))
            var events = await table.events().makeAsyncIterator()

            fixture.resolver.set(.success([.usb(USBRoute(udid: TunnelTableFixture.udid, port: 1))]))
            await table.refreshTargets()
            #expect(await table.list().first?.state == .active)
            guard case .changed(let changed) = await events.next() else {
                Issue.record("no change was told")
                return
            }
            #expect(changed.state == .active)

            // A dial to an absent device updates the state without a refresh.
            let bound = try fixture.address(tunnel)
            #expect(await SocketStream.isReset(by: bound))
            try await eventually("the tunnel waits") { await table.list().first?.state.name == "waiting" }
        }
    }

    @Test func `a tunnel on the same address replaces the old one, unless noRebind is set`() async throws {
        let table = try await fixture.table()
        try await fixture.running(table) {
            let first = try await table.create(fixture.spec())
            guard case .tcp(_, let port)? = first.listenAddresses.first else { return }
            let local = ListenAddress.tcp(host: nil, port: port)

            await #expect(throws: TunnelError.taken(local, by: first.id, leadsThere: true)) {
                try await table.create(fixture.spec(local, noRebind: true))
            }
            let second = try await table.create(fixture.spec(local, port: 9_999))
            let third = try await table.create(fixture.spec(local, port: 9_999))

            #expect(second.id != first.id)
            #expect(third.id == second.id)
            #expect([first.replaced, second.replaced, third.replaced] == [nil, first.id, nil])
            #expect(await table.list().map(\.id) == [second.id])
            #expect(await table.list().first?.replaced == nil)
        }
    }

    @Test func `an address that overlaps with a tunnel's is rejected, and the error names the tunnel`() async throws {
        let table = try await fixture.table()
        try await fixture.running(table) {
            let first = try await table.create(fixture.spec())
            guard case .tcp(_, let port)? = first.listenAddresses.first else { return }
            let local = ListenAddress.tcp(host: "127.0.0.1", port: port)

            await #expect(throws: TunnelError.taken(local, by: first.id)) {
                try await table.create(fixture.spec(local))
            }
        }
    }

    @Test func `a port of another program is rejected with a hint`() async throws {
        let otherProgram = try Listener(on: .ipv4(INADDR_LOOPBACK, port: 0))
        let local = ListenAddress.tcp(host: nil, port: otherProgram.address.port ?? 0)
        let table = try await fixture.table()
        try await fixture.running(table) {
            let error = await #expect(throws: TunnelError.self) { try await table.create(fixture.spec(local)) }

            #expect(error == .inUse(local))
            #expect(error?.description.contains("ss -ltnp") == true)
            #expect(await table.list().isEmpty)
        }
        withExtendedLifetime(otherProgram) {}
    }

    @Test func `a tunnel's unix socket has mode 0600 and is removed with the tunnel`() async throws {
        let echo = try EchoServer()
        fixture.resolver.set(.success([echo.route]))
        let scratch = Scratch()
        let path = "\(scratch.path)/tunnel.sock"
        let table = try await fixture.table()
        try await fixture.running(table) {
            defer { echo.stop() }
            let tunnel = try await table.create(fixture.spec(.unix(path: path)))
            var status = stat()
            #expect(lstat(path, &status) == 0)
            #expect(status.st_mode & 0o777 == 0o600)
            let client = try await SocketStream.connect(to: try fixture.address(tunnel))
            try await client.send([1, 2])
            #expect(try await client.receive(2) == [1, 2])

            try await table.remove(tunnel.id)

            #expect(lstat(path, &status) != 0)
            #expect(try await client.receiveSome().isEmpty)
        }
    }

    @Test func `a client disconnect cancels its dial`() async throws {
        let dialer = FakeDialer.silent()
        fixture.resolver.set(.success([.usb(USBRoute(udid: TunnelTableFixture.udid, port: 1))]))
        let table = try await fixture.table(dialer)
        try await fixture.running(table) {
            let tunnel = try await table.create(fixture.spec())
            var client: SocketStream? = try await SocketStream.connect(to: try fixture.address(tunnel))
            for await _ in dialer.begun.stream { break }

            client?.makeAbortive()
            client = nil

            for await _ in dialer.ended.stream { break }
            try await eventually("the connection is closed") { await table.list().first?.statistics.open == 0 }
            #expect(await table.list().first?.statistics.failures.isEmpty == true)
            _ = client
        }
    }

    @Test func `a connection over the limit is reset and counted`() async throws {
        let echo = try EchoServer()
        fixture.resolver.set(.success([echo.route]))
        let table = try await fixture.table(limits: TunnelLimits(connections: 2))
        try await fixture.running(table) {
            defer { echo.stop() }
            let tunnel = try await table.create(fixture.spec())
            let address = try fixture.address(tunnel)
            var clients: [SocketStream] = []
            for _ in 0..<2 {
                let client = try await SocketStream.connect(to: address)
                try await client.send([1])
                _ = try await client.receive(1)
                clients.append(client)
            }

            #expect(await SocketStream.isReset(by: address))
            #expect(await table.list().first?.statistics.failures == ["limit": 1])

            clients.removeLast()
            try await eventually("one connection is open") { await table.list().first?.statistics.open == 1 }
            let fourth = try await SocketStream.connect(to: address)
            try await fourth.send([1])
            #expect(try await fourth.receive(1) == [1])
        }
    }

    @Test func `clients over the dial limit wait in the queue and are all served`() async throws {
        let echo = try EchoServer()
        fixture.resolver.set(.success([echo.route]))
        let table = try await fixture.table(limits: TunnelLimits(concurrentDials: 2))
        try await fixture.running(table) {
            defer { echo.stop() }
            let address = try fixture.address(try await table.create(fixture.spec()))

            try await withThrowingTaskGroup(of: [UInt8].self) { group in
                for _ in 0..<50 {
                    group.addTask {
                        let client = try await SocketStream.connect(to: address)
                        try await client.send([9])
                        return try await client.receive(1)
                    }
                }
                for try await answer in group { #expect(answer == [9]) }
            }
        }
    }

    @Test func `port 0 of a device is rejected as a target`() async throws {
        let table = try await fixture.table()
        try await fixture.running(table) {
            await #expect(throws: TunnelError.self) { try await table.create(fixture.spec(port: 0)) }
        }
    }
}

import FoundationEssentials
import Glibc
import Model
import Samples
import SystemIO
import TestSupport
import Testing
import Tunnels

/// Tunnels across restarts, removals and stops.
@Suite(.serialized, .timeLimit(.minutes(2)))
struct TunnelLifeTests {
    private let fixture = TunnelTableFixture()

    @Test func `200 concurrent connections transfer all bytes`() async throws {
        ProcessLimits.raiseDescriptors()
        let echo = try EchoServer()
        fixture.resolver.set(.success([echo.route]))
        let table = try await fixture.table()
        try await fixture.running(table) {
            defer { echo.stop() }
            let tunnel = try await table.create(fixture.spec())
            let address = try fixture.address(tunnel)

            try await withThrowingTaskGroup(of: Bool.self) { group in
                for seed in 0..<200 {
                    group.addTask {
                        let client = try await SocketStream.connect(to: address)
                        let bytes = Pattern.bytes(65_536 * seed..<65_536 * (seed + 1))
                        try await client.send(bytes)
                        guard try await client.receive(bytes.count) == bytes else { return false }
                        // Every connection stays open until all 200 are established.
                        try await eventually("all clients are connected") {
                            await table.list().first?.statistics.connections == 200
                        }
                        return true
                    }
                }
                for try await isIntact in group { #expect(isIntact) }
            }

            #expect(try #require(await table.list().first).statistics.failures.isEmpty)
        }
    }

    @Test func `removing a tunnel closes its connections and frees its address`() async throws {
        let echo = try EchoServer()
        fixture.resolver.set(.success([echo.route]))
        let table = try await fixture.table()
        try await fixture.running(table) {
            defer { echo.stop() }
            let tunnel = try await table.create(fixture.spec())
            let address = try fixture.address(tunnel)
            let client = try await SocketStream.connect(to: address)
            try await client.send([1])
            _ = try await client.receive(1)

            try await table.remove(tunnel.id)

            await #expect(throws: SocketStream.Failure(code: ECONNRESET)) { try await client.receiveSome() }
            _ = try Listener(on: address)
            await #expect(throws: TunnelError.noSuchTunnel(tunnel.id)) { try await table.remove(tunnel.id) }
        }
    }

    @Test func `tunnels are restored after a restart with their IDs and ports`() async throws {
        let scratch = Scratch()
        var persistent: [Tunnel] = []
        let first = try await fixture.table(store: TunnelStore(directory: scratch.path, logger: .quiet))
        try await fixture.running(first) {
            _ = try await first.create(fixture.spec())
            let gone = try await first.create(fixture.spec())
            try await first.remove(gone.id)
            _ = try await first.create(fixture.spec(.unix(path: "\(scratch.path)/tunnel.sock")))
            _ = try await first.createEphemeral([fixture.spec()])
            persistent = await first.list().filter(\.spec.persistent)
        }

        let second = try await fixture.table(store: TunnelStore(directory: scratch.path, logger: .quiet))
        try await fixture.running(second) {
            let restored = await second.list()
            #expect(restored.map(\.id) == persistent.map(\.id))
            #expect(restored.map(\.spec) == persistent.map(\.spec))
            #expect(restored.map(\.listenAddresses) == persistent.map(\.listenAddresses))
            let new = try await second.create(fixture.spec())
            #expect(new.id == "t5")
        }
    }

    @Test func `a port in use at restart is opened as soon as it is free`() async throws {
        let scratch = Scratch()
        var bound: [ListenAddress] = []
        let first = try await fixture.table(store: TunnelStore(directory: scratch.path, logger: .quiet))
        try await fixture.running(first) { bound = try await first.create(fixture.spec()).listenAddresses }
        guard case .tcp(_, let port)? = bound.first else { return }
        let otherProgram = try Listener(on: .ipv4(INADDR_LOOPBACK, port: port))

        let second = try await fixture.table(store: TunnelStore(directory: scratch.path, logger: .quiet))
        try await fixture.running(second) {
            #expect(await second.list().first?.state.name == "failed")
            #expect(await second.list().first?.state.reason?.contains("\(port)") == true)
            otherProgram.close()

            try await eventually("the tunnel listens again") { await second.list().first?.listenAddresses == bound }
        }
    }

    @Test func `an unreadable state file is renamed, and the table starts`() async throws {
        let scratch = Scratch()
        let file = "\(scratch.path)/tunnels.json"
        let broken = Data(#"{"schema":1,"content":{"tunnels":[{"id":"t41","spec":"#.utf8)
        try broken.write(to: URL(filePath: file))

        let table = try await fixture.table(store: TunnelStore(directory: scratch.path, logger: .quiet))
        try await fixture.running(table) {
            #expect(await table.list().isEmpty)
            let new = try await table.create(fixture.spec())
            #expect(new.id == "t42")
            #expect(try Data(contentsOf: URL(filePath: file + ".unreadable")) == broken)
        }
    }

    @Test func `a tunnel that cannot be saved is not created`() async throws {
        let scratch = Scratch()
        let table = try await fixture.table(store: TunnelStore(directory: scratch.path + "/missing", logger: .quiet))
        try await fixture.running(table) {
            let error = await #expect(throws: TunnelError.self) { try await table.create(fixture.spec()) }

            guard case .notSaved = error else {
                Issue.record("the error is \(String(describing: error))")
                return
            }
            #expect(await table.list().isEmpty)
        }
    }

    @Test func `ephemeral tunnels are created all or none, replace no tunnel, and can be removed`() async throws {
        let table = try await fixture.table()
        try await fixture.running(table) {
            let standing = try await table.create(fixture.spec())
            guard case .tcp(_, let port)? = standing.listenAddresses.first else { return }
            let taken = fixture.spec(.tcp(host: nil, port: port), port: 1)

            await #expect(throws: TunnelError.self) {
                try await table.createEphemeral([fixture.spec(), taken, fixture.spec()])
            }
            #expect(await table.list() == [standing])
            let ephemeral = try await table.createEphemeral([fixture.spec(), fixture.spec()])
            #expect(ephemeral.count == 2 && ephemeral.allSatisfy { !$0.spec.persistent })

            await table.removeEphemeral(Set(ephemeral.map(\.id) + [standing.id, "t999"]))
            #expect(await table.list().map(\.id) == [standing.id])
        }
    }

    @Test func `a failing listening socket is shown as failed with the reason, and retried`()
        async throws
    {
        let echo = try EchoServer()
        fixture.resolver.set(.success([echo.route]))
        let table = try await fixture.table(limits: TunnelLimits(maxAcceptBackoff: .milliseconds(50)))
        try await fixture.running(table) {
            defer { echo.stop() }
            // After shutdown(2), a socket keeps a requested port and loses a port chosen by the kernel.
            let free = try await table.create(fixture.spec())
            let port = TunnelTableFixture.port(try #require(free.listenAddresses.first))
            try await table.remove(free.id)
            let address = try fixture.address(try await table.create(fixture.spec(.tcp(host: "127.0.0.1", port: port))))
            let listener = try #require((3..<1_024).map(CInt.init).first { SocketAddress.local(of: $0) == address })

            let events = await table.events()
            // accept(2) fails with EINVAL until the socket listens again.
            #expect(shutdown(listener, CInt(SHUT_RDWR)) == 0)
            var reason: String?
            for await event in events {
                guard case .changed(let tunnel) = event, case .failed(let why) = tunnel.state else { continue }
                reason = why
                break
            }
            #expect(reason?.contains("accepts no clients") == true)
            await table.refreshTargets()
            #expect(await table.list().first?.state == .failed(reason: reason ?? ""))

            #expect(listen(listener, 16) == 0)
            let client = try await SocketStream.connect(to: address)
            try await client.send([1, 2, 3])
            #expect(try await client.receive(3) == [1, 2, 3])
            // The event loop reports to the table without waiting for it.
            try await eventually("the tunnel is active") { await table.list().first?.state == .active }
        }
    }

    @Test func `stopping ends busy connections and pending dials within a second`() async throws {
        let dialer = FakeDialer.silent()
        fixture.resolver.set(.success([.usb(USBRoute(udid: TunnelTableFixture.udid, port: 1))]))
        let table = try await fixture.table(dialer)
        var client: SocketStream?
        var began = ContinuousClock.now
        try await fixture.running(table) {
            client = try await SocketStream.connect(to: try fixture.address(try await table.create(fixture.spec())))
            for await _ in dialer.begun.stream { break }
            began = .now
        }

        #expect(ContinuousClock.now - began < .seconds(1))
        await #expect(throws: SocketStream.Failure(code: ECONNRESET)) { try await client?.receiveSome() }
        await #expect(throws: TunnelError.stopping) { try await table.create(fixture.spec()) }
    }

    @Test func `100 starts and stops leak no descriptor and no thread`() async throws {
        let echo = try EchoServer()
        fixture.resolver.set(.success([echo.route]))
        defer { echo.stop() }
        try await cycle()
        let before = (try ThisProcess.descriptors(), try ThisProcess.threads())

        for _ in 0..<100 { try await cycle() }

        try await eventually("no descriptor is left open") { try ThisProcess.descriptors() <= before.0 }
        try await eventually("no thread is left") { try ThisProcess.threads() <= before.1 }
    }

    private func cycle() async throws {
        let table = try await fixture.table()
        try await fixture.running(table) {
            let client = try await SocketStream.connect(to: try fixture.address(try await table.create(fixture.spec())))
            try await client.send([1])
            #expect(try await client.receive(1) == [1])
        }
    }
}

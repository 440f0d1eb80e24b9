import Model
import Samples
import SystemIO
import TestSupport
import Testing
import Transport

@testable import API

@Suite struct RemoteListenerTests {
    private static func withListener(
        configured: SocketAddress? = nil,
        _ body: (RemoteListener, () async throws -> RemoteListener) async throws -> Void
    ) async throws {
        try await withScratchFolder { scratch in
            let make = { try await Self.listener(in: scratch, configured: configured) }
            try await body(try await make(), make)
        }
    }

    private static func listener(in scratch: ScratchFolder, configured: SocketAddress?) async throws -> RemoteListener {
        try await RemoteListener(
            RemoteListener.Settings(
                configured: configured,
                configurationFile: "/etc/patchbay/patchbay.toml",
                reachable: { [] }
            ),
            identityFile: TLSIdentityFile(scratch.file("remote.pem")),
            file: StateFile("remote", in: scratch.path, logger: .quiet),
            limiter: ConnectionLimiter()
        )
    }

    @Test func `the listener is off and has no key until it is turned on`() async throws {
        try await Self.withListener { listener, _ in
            let status = await listener.status()

            #expect(status.state == .off)
            #expect(status.pin == nil && status.address == nil && status.reachable.isEmpty)
        }
    }

    @Test func `on and off survive a restart, with the same key`() async throws {
        let port = try FreePorts.take()[0]
        try await Self.withListener { listener, restarted in
            let on = try await listener.set(RemoteSpec(enabled: true, address: "127.0.0.1:\(port)"))
            #expect(on.state == .listening && on.pin != nil)
            #expect(on.reachable == ["127.0.0.1:\(port)"])

            let second = try await restarted()
            #expect(await second.status().address == "127.0.0.1:\(port)")
            #expect(await second.status().pin == on.pin)

            let off = try await second.set(RemoteSpec(enabled: false))
            #expect(off.state == .off && off.pin == on.pin)
            #expect(try await restarted().status().state == .off)
        }
    }

    @Test(arguments: ["example.com:7283", "7283", "0.0.0.0", "0.0.0.0:0", "tcp:0.0.0.0:7283", "unix:/tmp/x", ""])
    func `an address that is not numeric or has no port is refused`(address: String) async throws {
        try await Self.withListener { listener, _ in
            let problem = await #expect(throws: Problem.self) {
                try await listener.set(RemoteSpec(enabled: true, address: address))
            }
            #expect(problem?.code == .badRequest)
            #expect(await listener.status().state == .off)
        }
    }

    /// 192.0.2.1 is an address for documentation (RFC 5737), which no machine has.
    @Test func `the command refuses an address that the machine does not have`() async throws {
        try await Self.withListener { listener, _ in
            let problem = await #expect(throws: Problem.self) {
                try await listener.set(RemoteSpec(enabled: true, address: "192.0.2.1:7283"))
            }
            #expect(problem?.detail.contains("192.0.2.1:7283") == true)
            #expect(await listener.status().state == .off)
        }
    }

    @Test func `the configuration waits for an address that the machine does not have`() async throws {
        let address = try #require(SocketAddress(numeric: "192.0.2.1", port: 7_283))
        try await Self.withListener(configured: address) { listener, _ in
            await #expect(throws: SocketError.self) { _ = try await listener.open(address) }

            let status = await listener.status()
            #expect(status.state == .waiting && status.configured)
            #expect(status.problem?.contains("192.0.2.1") == true)
        }
    }

    @Test func `a command cannot change what the configuration sets`() async throws {
        let address = try #require(SocketAddress(numeric: "127.0.0.1", port: try FreePorts.take()[0]))
        try await Self.withListener(configured: address) { listener, _ in
            let problem = await #expect(throws: Problem.self) { try await listener.set(RemoteSpec(enabled: false)) }
            #expect(problem?.detail.contains("/etc/patchbay/patchbay.toml sets api.remote") == true)
        }
    }

    @Test func `a second address needs the first one to be off`() async throws {
        let ports = try FreePorts.take(2)
        try await Self.withListener { listener, _ in
            _ = try await listener.set(RemoteSpec(enabled: true, address: "127.0.0.1:\(ports[0])"))
            _ = try await listener.set(RemoteSpec(enabled: true, address: "127.0.0.1:\(ports[0])"))
            let problem = await #expect(throws: Problem.self) {
                try await listener.set(RemoteSpec(enabled: true, address: "127.0.0.1:\(ports[1])"))
            }
            #expect(problem?.hint == "patchbay remote off")
        }
    }
}

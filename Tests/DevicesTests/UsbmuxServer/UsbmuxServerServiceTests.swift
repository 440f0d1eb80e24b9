@testable import Devices
import Glibc
import Model
import Synchronization
import SystemIO
import TestSupport
import Testing
import Tunnels

@Suite(.timeLimit(.minutes(1))) struct UsbmuxServerServiceTests {
    private static func isServed(_ client: SocketStream) async throws -> Bool {
        guard (try? await client.send(MuxMessage.request("ListDevices"))) != nil else { return false }
        return try await !ServerFixture.receive(from: client).isEmpty
    }

    @Test func `a client above the limit is disconnected, others are served, and a freed place is reusable`()
        async throws
    {
        try await ServerFixture.running(dialer: FakeDialer.silent(), clientLimit: 2) { _, address in
            let one = try await SocketStream.connect(to: address)
            #expect(try await Self.isServed(one))
            do {
                let two = try await SocketStream.connect(to: address)
                #expect(try await Self.isServed(two))
                let three = try await SocketStream.connect(to: address)
                #expect(try await !Self.isServed(three))
                #expect(try await Self.isServed(two))
            }
            try await eventually("a place is free") {
                let next = try await SocketStream.connect(to: address)
                return try await Self.isServed(next)
            }
            #expect(try await Self.isServed(one))
        }
    }

    @Test func `a client disconnect cancels its dial`() async throws {
        let dialer = FakeDialer.silent()
        try await ServerFixture.running(dialer: dialer, devices: [try ServerFixture.device(Phones.one)]) { _, address in
            do {
                let client = try await SocketStream.connect(to: address)
                // Retries until the device is listed.
                try await eventually("the dial begins") {
                    try? await client.send(MuxMessage.connect("<integer>1</integer>", "<integer>22</integer>"))
                    let answer = try await withTimeout(.milliseconds(50), clock: ContinuousClock()) {
                        try await ServerFixture.receive(from: client)
                    }
                    return answer == nil
                }
                for await _ in dialer.begun.stream { break }
            }

            for await _ in dialer.ended.stream { break }
        }
    }

    @Test func `a stream that the policy refuses is not dialed`() async throws {
        let (dialer, policy) = (FakeDialer.silent(), RefusingPolicy())
        let device = try ServerFixture.device(Phones.one)
        try await ServerFixture.running(dialer: dialer, policy: policy, devices: [device]) { _, address in
            let client = try await SocketStream.connect(to: address)

            // The result of a refused Connect is 3; 2 means that the phone is not listed yet.
            try await eventually("the phone is listed") {
                try await client.send(MuxMessage.connect("<integer>1</integer>", "<integer>22</integer>"))
                return try MuxResult(await ServerFixture.receive(from: client))?.code == 3
            }

            #expect(policy.requests.withLock { $0 } == [.device(udid: device.udid, port: 22 << 8)])
            #expect(dialer.routes.isEmpty)
        }
    }

    @Test func `a listener that sends a request is disconnected`() async throws {
        try await ServerFixture.running(dialer: FakeDialer.silent()) { _, address in
            let client = try await SocketStream.connect(to: address)
            try await client.send(MuxMessage.request("Listen"))
            #expect(try await !ServerFixture.receive(from: client).isEmpty)

            try await client.send(MuxMessage.request("ListDevices"))

            #expect(try await ServerFixture.receive(from: client).isEmpty)
        }
    }
}

/// Refuses all connections of this user, as if another client had a lease.
private final class RefusingPolicy: ConnectionPolicy {
    let requests = Mutex<Set<TunnelTarget>>([])

    func check(of target: TunnelTarget, for holder: String?, owner: UInt32) async -> @Sendable () -> DialError? {
        guard holder == nil, owner == geteuid() else { return { nil } }
        return { [self] in
            requests.withLock { _ = $0.insert(target) }
            return DialError(.leased, "another client has the lease")
        }
    }
}

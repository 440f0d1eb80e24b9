import Client
import Glibc
import Model
import NIOCore
import NIOHTTP1
import NIOPosix
import Samples
import Synchronization
import SystemIO
import TestSupport
import Testing
import Transport

@testable import Team

/// Connections to other hosts whose addresses have changed, or that are removed, with the real TLS.
@Suite(.timeLimit(.minutes(1))) struct MemberSecurityTests {
    private let lab1: MemberIdentity
    private let lab2: MemberIdentity
    private let lab3: MemberIdentity
    private let members: Members
    private let connections = MemberConnections()

    init() throws {
        let authority = try CertificateAuthority(creatingFor: SanitizedText("lab"))
        func identity(_ name: String) throws -> MemberIdentity {
            let key = try CertificateKey()
            let host = try #require(HostName(name))
            let certificate = try authority.issue(.host(host), request: key.signingRequest()).pem
            return try MemberIdentity(key: key, certificate: certificate, authority: authority.certificatePEM)
        }
        (lab1, lab2, lab3) = (try identity("lab1"), try identity("lab2"), try identity("lab3"))
        members = Members([lab2.host: lab2.pin, lab3.host: lab3.pin])
    }

    /// The members of the team, which a test changes.
    private final class Members: MemberDirectory {
        private let keys: Mutex<[HostName: KeyPin]>

        init(_ keys: [HostName: KeyPin]) { self.keys = Mutex(keys) }

        func accepts(_ host: HostName, key: KeyPin) -> Bool { keys.withLock { $0[host] == key } }
        func remove(_ host: HostName) { keys.withLock { $0[host] = nil } }
    }

    /// The number of bytes that a host received through TLS.
    private final class Received: Sendable {
        private let bytes = Mutex(0)

        var count: Int { bytes.withLock { $0 } }
        func add(_ count: Int) { bytes.withLock { $0 += count } }
    }

    private static let emptyAnswer = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"

    /// Answers every request with the same text.
    private final class AnswerHandler: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer

        private let received: Received
        private let answer: String

        init(_ received: Received, _ answer: String) { (self.received, self.answer) = (received, answer) }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            received.add(unwrapInboundIn(data).readableBytes)
            context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: answer)), promise: nil)
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
    }

    /// Runs the team listener of a host.
    private func listen(
        as identity: MemberIdentity,
        _ received: Received,
        answering answer: String = Self.emptyAnswer
    ) async throws -> any Channel {
        let tls = try MemberServerTLS(identity: identity)
        return try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(AnswerHandler(received, answer))
                    try tls.secure(channel)
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
    }

    private func address(_ listeners: any Channel...) -> MemberAddress {
        let addresses = listeners.map { "127.0.0.1:\($0.localAddress?.port ?? 0)" }
        return MemberAddress(host: lab2.host, key: lab2.pin, addresses: addresses)
    }

    private func client() throws -> HostClient {
        let tls = try MemberClientTLS(identity: lab1)
        return HostClient(addressRefusal: { _ in nil }) { [members, connections] host in
            MemberSecurity(tls: tls, members: members, connections: connections, host: host)
        }
    }

    private let request = OutgoingRequest(method: .POST, path: ["status"], body: Array("{}".utf8))

    @Test func `the next address is tried if another member answers at the first one`() async throws {
        let (wrong, right) = (Received(), Received())
        let (lab3, lab2) = (try await listen(as: lab3, wrong), try await listen(as: lab2, right))
        let client = try client()
        for _ in 0..<20 {
            let response = try await client.send(request, to: address(lab3, lab2), within: .seconds(30))
            #expect(response.status == 200)
            response.close()
            client.closeIdle(to: self.lab2.host)
        }
        #expect(wrong.count == 0 && right.count > 0)
        for listener in [lab3, lab2] { try await listener.close().get() }
    }

    @Test func `another member at the last address is an error about the address, and gets nothing`() async throws {
        let received = Received()
        let listener = try await listen(as: lab3, received)
        let address = address(listener)
        let client = try client()
        let expected = ClientError.otherKey(address: "127.0.0.1:\(listener.localAddress?.port ?? 0)")

        let failure = expected.hostError(lab2.host, isSent: true)
        await #expect(throws: failure) { _ = try await client.send(request, to: address, within: .seconds(30)) }
        await #expect(throws: expected.hostError(lab2.host, isSent: false)) {
            let shop: EndpointID = "shop"
            _ = try await client.openStream(to: .endpoint(shop), at: address, headers: [])
        }

        #expect(received.count == 0)
        #expect("\(failure)".contains("another host answers at 127.0.0.1:"))
        try await listener.close().get()
    }

    @Test func `the removal of a host ends a response in progress`() async throws {
        let endless = "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nbegin"
        let listener = try await listen(as: lab2, Received(), answering: endless)
        let client = try client()
        let response = try await client.send(request, to: address(listener), within: .seconds(30))
        #expect(connections.count == 1)
        #expect(await connections.closeRefused(by: members).isEmpty)

        members.remove(lab2.host)

        #expect(await connections.closeRefused(by: members) == [lab2.host])
        #expect(connections.count == 0)
        await #expect(throws: HostError.responseLost(lab2.host)) {
            while try await response.next() != nil {}
        }
        try await listener.close().get()
    }

    @Test func `the removal of a host resets a stream through its broker`() async throws {
        let upgrade = "Connection: Upgrade\r\nUpgrade: \(TunnelTarget.streamProtocol)\r\n\r\n"
        let listener = try await listen(
            as: lab2,
            Received(),
            answering: "HTTP/1.1 101 Switching Protocols\r\n\(upgrade)"
        )
        let shop: EndpointID = "shop"
        let connection = try await client().openStream(to: .endpoint(shop), at: address(listener), headers: [])
        let stream = SocketStream(owning: Descriptor(owning: connection.release().number))
        #expect(connections.count == 1)

        members.remove(lab2.host)

        #expect(await connections.closeRefused(by: members) == [lab2.host])
        await #expect(throws: SocketStream.Failure(code: ECONNRESET)) { try await stream.receiveSome() }
        try await listener.close().get()
    }

    @Test func `a host that is removed during a connection attempt gets nothing, and the error says why`() async throws
    {
        let received = Received()
        let listener = try await listen(as: lab2, received)
        let address = address(listener)
        let client = try client()
        members.remove(lab2.host)
        let expected = ClientError.notTrusted(address: "127.0.0.1:\(listener.localAddress?.port ?? 0)")

        let failure = expected.hostError(lab2.host, isSent: true)
        await #expect(throws: failure) { _ = try await client.send(request, to: address, within: .seconds(30)) }
        await #expect(throws: expected.hostError(lab2.host, isSent: false)) {
            let shop: EndpointID = "shop"
            _ = try await client.openStream(to: .endpoint(shop), at: address, headers: [])
        }

        #expect(failure == .absent(lab2.host))
        #expect(received.count == 0)
        try await eventually("the connection is closed") { connections.count == 0 }
        try await listener.close().get()
    }

    @Test func `a host that does not answer is silent, and may have executed the request`() {
        let error = ClientError.timedOut(what: "POST /v1/status", seconds: 14.5)

        #expect(error.hostError(lab2.host, isSent: true) == .silent(lab2.host, seconds: 15))
        #expect("\(error.hostError(lab2.host, isSent: true))".contains("the host lab2 has not answered for 15 s"))
        #expect(error.hostError(lab2.host, isSent: false) == .unreachable(lab2.host, reason: "it did not answer"))
    }
}

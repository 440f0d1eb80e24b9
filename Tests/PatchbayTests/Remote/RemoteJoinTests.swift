import Client
import FoundationEssentials
import Model
import NIOCore
import NIOPosix
import Samples
import Synchronization
import TestSupport
import Testing
import Transport

@testable import patchbay

/// `patchbay join -` with a broker on another machine, against a server with real TLS.
@Suite(.scratchFolder) struct RemoteJoinTests {
    private let scratch = ScratchFolder.current
    private static let invite = "pbi_0a1B2c3D_Zz9Yy8Xx7Ww6Vv5Uu4Tt3S_3qRfmQ"

    /// The bytes that a server received, before and after TLS.
    private final class Received: Sendable {
        let wire = Mutex<[UInt8]>([])
        let plain = Mutex<[UInt8]>([])
    }

    private final class Recorder: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer

        private let record: ([UInt8]) -> Void

        init(_ record: @escaping ([UInt8]) -> Void) { self.record = record }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            record(Array(buffer: unwrapInboundIn(data)))
            context.fireChannelRead(data)
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
    }

    /// A server that does not speak TLS.
    private final class PlainServer: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            let answer = wrapOutboundOut(ByteBuffer(string: "HTTP/1.1 400 Bad Request\r\n\r\n"))
            context.writeAndFlush(answer, promise: nil)
        }
    }

    /// Runs the body with a TLS server that records and never answers.
    private func withServer(_ identity: TLSIdentity, _ body: (UInt16, Received) async throws -> Void) async throws {
        let (server, received) = (try ServerTLS(identity: identity), Received())
        let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try server.secure(channel)
                    let pipeline = channel.pipeline.syncOperations
                    try pipeline.addHandler(Recorder { bytes in received.plain.withLock { $0 += bytes } })
                    try pipeline.addHandler(
                        Recorder { bytes in received.wire.withLock { $0 += bytes } },
                        position: .first
                    )
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        let port = try #require(channel.localAddress?.port)
        try await body(UInt16(port), received)
        try await channel.close()
    }

    private func join(_ port: UInt16, _ pin: KeyPin) -> RemoteJoin {
        RemoteJoin(host: "127.0.0.1", port: port, pin: pin, invite: Secret(Self.invite), grantName: nil)
    }

    @Test func `a server with another key receives a handshake and nothing of the invite`() async throws {
        let store = try JoinedBrokerStore(environment: ["XDG_STATE_HOME": scratch.path])
        try await withServer(try TLSIdentity()) { port, received in
            let error = await #expect(throws: ClientError.self) {
                try await join(port, KeyPin.sample(1)).join(as: "lab", in: store, known: [])
            }

            #expect(error == .otherKey(address: "127.0.0.1:\(port)"))
            #expect(received.plain.withLock { $0.isEmpty })
            let wire = received.wire.withLock { $0 }
            #expect(!wire.isEmpty && !String(decoding: wire, as: UTF8.self).contains("pbi_"))
            let (brokers, key) = (try store.all, try store.keyFile(of: "lab").load())
            #expect(brokers.isEmpty && key == nil)
        }
    }

    @Test func `a name of another broker is refused before a connection`() async throws {
        let store = try JoinedBrokerStore(environment: ["XDG_STATE_HOME": scratch.path])
        try store.prepare()
        let other = JoinedBroker(
            name: "127-0-0-1",
            host: "192.168.1.7",
            port: 7_283,
            pin: KeyPin.sample(1),
            grant: PairingSample.grant,
            token: nil
        )
        try store.save(other)
        let identity = try TLSIdentity()
        try await withServer(identity) { port, received in
            let error = await #expect(throws: CLIError.self) {
                try await join(port, identity.pin).join(as: nil, in: store, known: [PairingSample.grant.id])
            }

            #expect(error?.status == .usage && error?.hint?.contains("--as") == true)
            #expect(received.wire.withLock { $0.isEmpty })
            let kept = try store.broker(named: "127-0-0-1")
            #expect(kept.host == "192.168.1.7")
        }
    }

    @Test func `a name that another command stored meanwhile is refused before a connection`() async throws {
        let store = try JoinedBrokerStore(environment: ["XDG_STATE_HOME": scratch.path])
        try store.prepare()
        let identity = try TLSIdentity()
        try await withServer(identity) { port, received in
            let (held, holder) = AsyncStream.makeStream(of: Never.self)
            let (release, releaser) = AsyncStream.makeStream(of: Never.self)
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask {
                    // Another command, which has the lock.
                    try await store.locked {
                        holder.finish()
                        for await _ in release {}
                        let winner = JoinedBroker(
                            name: "lab",
                            host: "127.0.0.1",
                            port: port,
                            pin: identity.pin,
                            grant: PairingSample.grant,
                            token: nil
                        )
                        try store.save(winner)
                    }
                }
                for await _ in held {}
                group.addTask {
                    let error = await #expect(throws: CLIError.self) {
                        try await join(port, identity.pin).join(as: "lab", in: store, known: [])
                    }
                    #expect(error?.message.hasPrefix("the name lab exists") == true)
                }
                releaser.finish()
                try await group.waitForAll()
            }
            #expect(received.wire.withLock { $0.isEmpty })
            let kept = try store.broker(named: "lab")
            #expect(kept.grant == PairingSample.grant)
        }
    }

    @Test func `each reason of a failed connection has its own message`() async throws {
        let client = try ClientTLS(identity: TLSIdentity())
        func failure(_ host: String, _ port: UInt16) async -> ClientError? {
            let address = BrokerAddress.remote(host: host, port: port, pin: KeyPin.sample(1))
            return await #expect(throws: ClientError.self) {
                try await PatchbayClient(address: address, security: client).ownGrant()
            }
        }

        #expect(await failure("127.0.0.1", 1) == .noListener(address: "127.0.0.1:1"))
        try await withServer(TLSIdentity()) { port, _ in
            #expect(await failure("127.0.0.1", port) == .otherKey(address: "127.0.0.1:\(port)"))
        }
        let plain = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(PlainServer()) }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        let port = UInt16(try #require(plain.localAddress?.port))
        #expect(
            await failure("127.0.0.1", port)
                == .tlsFailed(address: "127.0.0.1:\(port)", reason: "wrong version number")
        )
        try await plain.close()
    }
}

import Glibc
import NIOCore
import NIOPosix
import SystemIO
import Testing
import Transport

/// A bridge between two socket pairs: the test holds the outer ends.
private struct BridgeFixture: ~Copyable {
    /// The far end of the channel, as a program on another machine.
    let peer: Descriptor
    /// The descriptor that stands for the channel.
    let socket: Descriptor
    /// The number of the bridge's own end of the socket pair.
    let inner: CInt

    init(sending first: String = "") async throws {
        let (far, near) = try loopbackSocketPair()
        let channel = try await ClientBootstrap(group: .singletonMultiThreadedEventLoopGroup)
            .channelOption(.allowRemoteHalfClosure, value: true)
            .channelOption(.autoRead, value: false)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(ResetHandler()) }
            }
            .withConnectedSocket(near)
            .get()
        let (inner, outer) = try loopbackSocketPair()
        let bridge = try await SocketBridge(channel, to: Descriptor(owning: inner))
        bridge.start(sending: ByteBuffer(string: first))
        peer = Descriptor(owning: far)
        socket = Descriptor(owning: outer)
        self.inner = inner
    }
}

/// Reads until EOF, a failure, or `limit` bytes. Returns the bytes, and the errno of a failure or 0.
private func read(_ descriptor: CInt, atMost limit: Int = .max) async throws -> (bytes: [UInt8], code: CInt) {
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 64 << 10)
    while bytes.count < limit {
        let count = recv(descriptor, &buffer, min(buffer.count, limit - bytes.count), 0)
        if count == 0 { return (bytes, 0) }
        if count > 0 {
            bytes += buffer[..<count]
        } else if errno == EAGAIN {
            try await Poller.shared.wait(for: .readable, of: descriptor)
        } else {
            return (bytes, errno)
        }
    }
    return (bytes, 0)
}

/// Writes all bytes. Returns the errno of a failure or 0.
private func write(_ bytes: [UInt8], to descriptor: CInt) async throws -> CInt {
    var rest = bytes[...]
    while !rest.isEmpty {
        let count = rest.withUnsafeBytes { send(descriptor, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL)) }
        if count > 0 {
            rest = rest.dropFirst(count)
        } else if errno == EAGAIN {
            try await Poller.shared.wait(for: .writable, of: descriptor)
        } else {
            return errno
        }
    }
    return 0
}

@Suite struct SocketBridgeTests {
    @Test func `bytes pass in both directions, after the bytes of the start`() async throws {
        let bridge = try await BridgeFixture(sending: "101\n")
        #expect(try await read(bridge.peer.number, atMost: 4).bytes == Array("101\n".utf8))
        #expect(try await write(Array("ping".utf8), to: bridge.peer.number) == 0)
        #expect(try await read(bridge.socket.number, atMost: 4).bytes == Array("ping".utf8))
        #expect(try await write(Array("pong".utf8), to: bridge.socket.number) == 0)
        #expect(try await read(bridge.peer.number, atMost: 4).bytes == Array("pong".utf8))
    }

    @Test func `a half-close arrives, and the other direction goes on`() async throws {
        let bridge = try await BridgeFixture()
        let (peer, socket) = (bridge.peer.number, bridge.socket.number)
        _ = try await write(Array("question".utf8), to: peer)
        shutdown(peer, CInt(SHUT_WR))
        #expect(try await read(socket).bytes == Array("question".utf8))
        _ = try await write(Array("answer".utf8), to: socket)
        shutdown(socket, CInt(SHUT_WR))
        let answer = try await read(peer)
        #expect(answer.bytes == Array("answer".utf8) && answer.code == 0)
    }

    @Test(arguments: [true, false]) func `a reset of one side resets the other`(peerResets: Bool) async throws {
        let bridge = try await BridgeFixture()
        _ = try await write([1, 2, 3], to: bridge.peer.number)
        #expect(try await read(bridge.socket.number, atMost: 3).bytes == [1, 2, 3])
        if peerResets {
            bridge.peer.reset()
            #expect(try await read(bridge.socket.number).code == ECONNRESET)
        } else {
            bridge.socket.reset()
            #expect(try await read(bridge.peer.number).code == ECONNRESET)
        }
    }

    @Test(.timeLimit(.minutes(1))) func `a channel that is closed already gets no bridge, and the socket is closed`()
        async throws
    {
        let (far, near) = try loopbackSocketPair()
        let peer = Descriptor(owning: far)
        let channel = try await ClientBootstrap(group: .singletonMultiThreadedEventLoopGroup)
            .withConnectedSocket(near)
            .get()
        try await channel.close()
        let (inner, outer) = try loopbackSocketPair()
        let socket = Descriptor(owning: outer)

        await #expect(throws: (any Error).self) { _ = try await SocketBridge(channel, to: Descriptor(owning: inner)) }

        #expect(try await read(socket.number).bytes.isEmpty)
        #expect(try await read(peer.number).bytes.isEmpty)
    }

    @Test func `the receive buffer is fixed, because NIO reads all of it at an end of input`() async throws {
        let bridge = try await BridgeFixture()
        let (other, end) = try loopbackSocketPair()
        defer { for number in [other, end] { close(number) } }
        let size: CInt = 1 << 20
        #expect(setsockopt(other, SOL_SOCKET, SO_RCVBUF, [size], socklen_t(MemoryLayout<CInt>.size)) == 0)

        #expect(receiveBuffer(of: bridge.inner) == receiveBuffer(of: other))
    }

    private func receiveBuffer(of socket: CInt) -> CInt {
        var size: CInt = 0
        var length = socklen_t(MemoryLayout<CInt>.size)
        getsockopt(socket, SOL_SOCKET, SO_RCVBUF, &size, &length)
        return size
    }

    @Test func `a slow reader stops the writer, and no byte is lost`() async throws {
        let bridge = try await BridgeFixture()
        let (peer, socket) = (bridge.peer.number, bridge.socket.number)
        let data = (0..<(64 << 20)).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 11) }
        // Fills every buffer on the way without a reader.
        var sent = 0
        while true {
            let count = data[sent...].withUnsafeBytes { bytes in
                send(peer, bytes.baseAddress, min(bytes.count, 1 << 20), CInt(MSG_NOSIGNAL))
            }
            if count > 0 {
                sent += count
                continue
            }
            guard try await Poller.shared.wait(for: .writable, of: peer, atMost: .milliseconds(300), by: PollerClock())
            else { break }
        }
        #expect(sent < data.count / 2)
        let rest = Array(data[sent...])
        async let written = write(rest, to: peer)
        let received = try await read(socket, atMost: data.count)
        #expect(try await written == 0)
        #expect(received.bytes == data)
    }
}

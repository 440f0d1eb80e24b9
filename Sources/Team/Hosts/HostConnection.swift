import Glibc
import NIOCore
import NIOHTTP1
import NIOPosix
import Synchronization

/// A connection to the broker of another host that carries one request after another.
final class HostConnection: Sendable {
    let address: MemberAddress
    private let channel: any Channel
    private let reader: NIOLoopBound<ResponseReader>
    private let idleSince = Mutex(ContinuousClock.now)

    init(to address: MemberAddress, over channel: any Channel, _ reader: NIOLoopBound<ResponseReader>) {
        (self.address, self.channel, self.reader) = (address, channel, reader)
    }

    /// The time in milliseconds without an acknowledgement of sent bytes after which the kernel ends the connection
    /// (TCP_USER_TIMEOUT in tcp(7)). Without it, a request to a host that was cut off waits for many minutes.
    private static let acknowledgementTimeout = 10_000

    /// Adds the handlers of a new channel. Called on the event loop.
    static func addHandlers(to channel: any Channel) throws -> NIOLoopBound<ResponseReader> {
        try channel.syncOptions?.setOption(
            .tcpOption(NIOBSDSocket.Option(rawValue: TCP_USER_TIMEOUT)),
            value: acknowledgementTimeout
        )
        let reader = ResponseReader()
        try channel.pipeline.syncOperations.addHTTPClientHandlers()
        try channel.pipeline.syncOperations.addHandler(reader)
        return NIOLoopBound(reader, eventLoop: channel.eventLoop)
    }

    /// The time without a request.
    var idleTime: Duration { ContinuousClock.now - idleSince.withLock { $0 } }

    /// Sends the first request of a new connection. Returns when TLS has completed its handshake and taken the bytes.
    ///
    /// - Throws: `ResponseReader.End`.
    func send(_ head: HTTPRequestHead, body: [UInt8]) async throws {
        do {
            try await withTaskCancellationHandler {
                try await channel.eventLoop.flatSubmit { self.write(head, body) }.get()
            } onCancel: {
                close()
            }
        } catch {
            // TLS reports the reason before it closes the channel. The error of the write is then only the closed channel.
            let end = try? await channel.eventLoop.submit { [reader] in reader.value.end }.get()
            throw end.flatMap { $0 } ?? ResponseReader.End.broken(error)
        }
    }

    /// Sends a request over an idle connection.
    ///
    /// One step on the event loop, because each switch of threads delays the request.
    ///
    /// - Parameters:
    ///   - head: The head of the request.
    ///   - body: The body; empty without a body.
    ///   - limit: The time to wait for the response.
    /// - Returns: The first parts of the response.
    /// - Throws: `ResponseReader.End`, `CancellationError`.
    func exchange(
        _ head: HTTPRequestHead,
        body: [UInt8],
        within limit: Duration
    ) async throws -> [HTTPClientResponsePart] {
        try await withTaskCancellationHandler {
            try Task.checkCancellation()
            return try await channel.eventLoop.flatSubmit { [channel, reader] in
                guard channel.isActive, reader.value.isIdle else {
                    return channel.eventLoop.makeFailedFuture(ResponseReader.End.idleClose)
                }
                // A failed write ends the connection, which the reader reports.
                self.write(head, body).whenFailure { _ in channel.close(promise: nil) }
                return reader.value.next(on: channel.eventLoop, within: limit)
            }.get()
        } onCancel: {
            close()
        }
    }

    private func write(_ head: HTTPRequestHead, _ body: [UInt8]) -> EventLoopFuture<Void> {
        reader.value.begin()
        channel.write(HTTPClientRequestPart.head(head), promise: nil)
        if !body.isEmpty {
            channel.write(HTTPClientRequestPart.body(.byteBuffer(ByteBuffer(bytes: body))), promise: nil)
        }
        return channel.writeAndFlush(HTTPClientRequestPart.end(nil))
    }

    /// Waits for the next parts of the response.
    ///
    /// - Parameter limit: The time to wait for a part; nil for no limit.
    /// - Returns: The parts that have arrived, at least one.
    /// - Throws: `ResponseReader.End`, `CancellationError`.
    func next(within limit: Duration?) async throws -> [HTTPClientResponsePart] {
        try await withTaskCancellationHandler {
            try Task.checkCancellation()
            return try await channel.eventLoop.flatSubmit { [channel, reader] in
                reader.value.next(on: channel.eventLoop, within: limit)
            }.get()
        } onCancel: {
            close()
        }
    }

    /// Records the end of a response.
    func becameIdle() { idleSince.withLock { $0 = .now } }

    func close() { channel.close(promise: nil) }
}

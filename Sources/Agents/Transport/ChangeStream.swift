import Apps
import Model
import ServiceLifecycle

/// A stream of a handler's changes. It ends when the reader disconnects, the stream is replaced, or the broker stops.
struct ChangeStream: Sendable {
    /// An event of the stream.
    enum Event: Sendable {
        case change(ServerChange)
        case keepAlive
        /// The broker stops; the reader gets the final message.
        case end
    }

    /// The maximum number of changes that wait for a slow reader. At the limit the stream ends; the reader reconnects
    /// and reads the lists again.
    private static let backlog = 256

    private let events: AsyncStream<Event>
    private let continuation: AsyncStream<Event>.Continuation
    private let keepAliveTimer: KeepAliveTimer

    init(_ keepAliveTimer: KeepAliveTimer) {
        (events, continuation) = AsyncStream.makeStream(of: Event.self, bufferingPolicy: .bufferingOldest(Self.backlog))
        self.keepAliveTimer = keepAliveTimer
    }

    /// Ends the stream without a final message, because another stream replaces it.
    func stop() { continuation.finish() }

    /// Adds a change to those of the handler.
    func send(_ change: ServerChange) { continuation.yield(.change(change)) }

    /// Streams the changes until the end.
    ///
    /// - Parameters:
    ///   - httpRequest: The HTTP request of the stream.
    ///   - writer: Writes the response.
    ///   - changes: The changes of the handler.
    ///   - first: Sent before everything else.
    ///   - last: Sent if the broker ends the stream.
    ///   - message: Returns the message for a change; nil if the reader did not subscribe to that change.
    /// - Throws: If the reader has disconnected.
    func run<Writer: MCPResponseBodyWriter & ~Copyable>(
        for httpRequest: MCPHTTPRequest,
        to writer: inout Writer,
        changes: AsyncStream<ServerChange>,
        first: [UInt8],
        last: [UInt8]?,
        message: @Sendable (ServerChange) async -> JSON?
    ) async throws {
        try await writer.begin(MCPHTTPResponse.events)
        try await writer.send(first)
        httpRequest.onDisconnect? { [continuation] in continuation.finish() }
        let registration = keepAliveTimer.register { [continuation] in continuation.yield(.keepAlive) }
        defer { keepAliveTimer.unregister(registration) }
        try await withThrowingDiscardingTaskGroup { [continuation] group in
            group.addTask {
                await withGracefulShutdownHandler {
                    for await change in changes {
                        if case .dropped = continuation.yield(.change(change)) { break }
                    }
                    continuation.finish()
                } onGracefulShutdown: {
                    continuation.yield(.end)
                    continuation.finish()
                }
            }
            for await event in events {
                switch event {
                case .change(let change):
                    if let json = await message(change) { try await writer.send(SSEEncoder.message(json)) }
                case .keepAlive: try await writer.send(SSEEncoder.comment)
                case .end: if let last { try await writer.send(last) }
                }
            }
            group.cancelAll()
        }
        try await writer.end()
    }
}

import JSON
import ServiceLifecycle

/// A stream of a server's changes, until the reader goes, somebody ends it, or the broker stops.
struct ChangeStream: Sendable {
    enum Event: Sendable {
        case change(ServerChange)
        case quiet
        /// The reader is to be told that this was all.
        case end
    }

    /// Changes that wait for a slow reader; then the stream ends, and the reader comes back and looks anew.
    private static let backlog = 256

    private let events: AsyncStream<Event>
    private let told: AsyncStream<Event>.Continuation
    private let heartbeat: KeepAliveTimer

    init(_ heartbeat: KeepAliveTimer) {
        (events, told) = AsyncStream.makeStream(of: Event.self, bufferingPolicy: .bufferingOldest(Self.backlog))
        self.heartbeat = heartbeat
    }

    /// Ends it without a word, for a stream that takes its place.
    func stop() { told.finish() }

    /// Follows the changes until the end. `first` is sent before everything else, `last` when it is the broker that ends the
    /// stream; `message` says what a change is to this reader, nil where it is nothing to it.
    func run<Writer: MCPResponseBodyWriter & ~Copyable>(
        for call: MCPHTTPRequest,
        to writer: inout Writer,
        changes: AsyncStream<ServerChange>,
        first: [UInt8],
        last: [UInt8]?,
        message: @Sendable (ServerChange) async -> JSON?
    ) async throws {
        try await writer.begin(MCPHTTPResponse.events)
        try await writer.send(first)
        call.onDeparture? { [told] in told.finish() }
        let beats = heartbeat.join { [told] in told.yield(.quiet) }
        defer { heartbeat.leave(beats) }
        try await withThrowingDiscardingTaskGroup { [told] group in
            group.addTask {
                await withGracefulShutdownHandler {
                    for await change in changes {
                        if case .dropped = told.yield(.change(change)) { break }
                    }
                    told.finish()
                } onGracefulShutdown: {
                    told.yield(.end)
                    told.finish()
                }
            }
            for await event in events {
                switch event {
                case .change(let change):
                    if let json = await message(change) { try await writer.send(SSEEncoder.message(json)) }
                case .quiet: try await writer.send(SSEEncoder.comment)
                case .end: if let last { try await writer.send(last) }
                }
            }
            group.cancelAll()
        }
        try await writer.end()
    }
}

import FoundationEssentials
import HTTPTypes
import HummingbirdCore
import Model
import NIOCore
import ServiceLifecycle
import SystemIO

/// A stream of server-sent events (WHATWG HTML, section 9.2).
struct ServerSentEventStream: Sendable {
    /// The interval of the comments that keep intermediaries from closing an idle stream.
    static let heartbeatInterval = Duration.seconds(15)
    /// The maximum number of events that wait for a slow reader. At the limit the stream ends, and the reader
    /// reconnects with `Last-Event-ID`.
    static let maxBufferedEvents = 1_000

    /// Bytes of the response.
    private struct Part {
        let bytes: [UInt8]
        /// Completed when the bytes are written.
        var written: Promise<Void>?
    }

    private let out: AsyncStream<Part>.Continuation

    /// Sends one event. The data is one line of JSON, so no value can break the framing.
    func send(_ name: String, _ value: some Encodable, id: UInt64? = nil) throws {
        send(SSEEncoder.event(name, id: id, data: try JSONCoding.encoder().encode(value)))
    }

    /// Sends one event whose data is encoded already, as one line of JSON.
    func send(_ name: String, encoded data: [UInt8]) { send(SSEEncoder.event(name, data: data)) }

    private func send(_ event: [UInt8]) {
        if case .dropped = out.yield(Part(bytes: event)) { out.finish() }
    }

    /// Sends events that are encoded already, and waits until the reader has room for more.
    func sendWritten(_ events: [UInt8]) async throws {
        guard !events.isEmpty else { return }
        let written = Promise<Void>()
        out.yield(Part(bytes: events, written: written))
        try await written.value()
    }

    /// Returns a response whose events `produce` sends.
    ///
    /// `produce` is cancelled when the reader disconnects or the broker stops. The response ends when `produce`
    /// returns. If the reader disconnects before the response begins, `produce` is never called.
    static func response(
        to request: Request,
        produce: @escaping @Sendable (ServerSentEventStream) async throws -> Void
    ) -> APIResponse {
        let body = ResponseBody { writer in
            do {
                try await request.body.consumeWithCancellationOnInboundClose { _ in
                    try await Self.pump(into: &writer, produce)
                }
            } catch is CancellationError {
                // The reader has disconnected, or the broker stops.
            }
            try await writer.finish(nil)
        }
        return .response(Response(status: .ok, headers: [.contentType: "text/event-stream"], body: body))
    }

    private static func pump(
        into writer: inout any ResponseBodyWriter,
        _ produce: @escaping @Sendable (ServerSentEventStream) async throws -> Void
    ) async throws {
        let (parts, out) = AsyncStream.makeStream(
            of: Part.self,
            bufferingPolicy: .bufferingOldest(maxBufferedEvents)
        )
        let stream = ServerSentEventStream(out: out)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                defer { out.finish() }
                try await cancelWhenGracefulShutdown { try await produce(stream) }
            }
            group.addTask {
                while true {
                    // The interval is fixed: comments are also sent while there are no events.
                    try await Task.sleep(for: heartbeatInterval)
                    stream.send(SSEEncoder.comment)
                }
            }
            defer { group.cancelAll() }
            for await part in parts {
                try await writer.write(ByteBuffer(bytes: part.bytes))
                part.written?.complete(.success(()))
            }
        }
    }
}

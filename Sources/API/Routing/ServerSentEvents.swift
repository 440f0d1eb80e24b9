import FoundationEssentials
import HTTPTypes
import Hummingbird
import Model
import NIOCore
import ServiceLifecycle

/// Server-sent events (WHATWG HTML, section 9.2): a response that stays open and says what happens.
struct ServerSentEventStream: Sendable {
    /// Between comments that keep intermediaries from closing a quiet stream.
    static let heartbeat = Duration.seconds(15)
    /// Events that wait for a slow reader; then the stream ends, and the reader comes back with `Last-Event-ID`.
    static let backlog = 1_000

    private let out: AsyncStream<String>.Continuation

    /// One event. Its data is one line of JSON, so that the framing cannot be broken from inside.
    func send(_ name: String, _ value: some Encodable, id: UInt64? = nil) throws {
        let data = String(decoding: try JSONCoding.encoder().encode(value), as: UTF8.self)
        send(raw: (id.map { "id: \($0)\n" } ?? "") + "event: \(name)\ndata: \(data)\n\n")
    }

    private func send(raw text: String) {
        if case .dropped = out.yield(text) { out.finish() }
    }

    /// A response whose events `produce` sends. It is cancelled when the reader goes away or the broker stops, and the
    /// response ends when it returns. It is never called for a reader that goes away before the response begins.
    static func response(
        to request: Request,
        produce: @escaping @Sendable (ServerSentEventStream) async throws -> Void
    ) -> Response {
        let headers: HTTPFields = [
            .contentType: "text/event-stream", .cacheControl: "no-store",
        ]
        return Response(
            status: .ok,
            headers: headers,
            body: ResponseBody { writer in
                do {
                    try await request.body.consumeWithCancellationOnInboundClose { _ in
                        try await Self.pump(into: &writer, produce)
                    }
                } catch is CancellationError {
                    // The reader is gone, or we are.
                }
                try await writer.finish(nil)
            }
        )
    }

    private static func pump(
        into writer: inout any ResponseBodyWriter,
        _ produce: @escaping @Sendable (ServerSentEventStream) async throws -> Void
    ) async throws {
        let (texts, out) = AsyncStream.makeStream(of: String.self, bufferingPolicy: .bufferingOldest(backlog))
        let stream = ServerSentEventStream(out: out)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                defer { out.finish() }
                try await cancelWhenGracefulShutdown { try await produce(stream) }
            }
            group.addTask {
                while true {
                    // Nothing is awaited: this is for streams on which nothing happens.
                    try await Task.sleep(for: heartbeat)
                    stream.send(raw: ":\n\n")
                }
            }
            defer { group.cancelAll() }
            for await text in texts { try await writer.write(ByteBuffer(string: text)) }
        }
    }
}

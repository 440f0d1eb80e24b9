import FoundationEssentials
import JSON
import Synchronization
import SystemIO

/// One request on its way through a server: what it tells meanwhile, its end, and everything that may end it before.
///
/// The answer is a plain document where nothing comes before it; else a stream of events, as from the first of them on.
struct InFlightRequest: Sendable {
    enum Event: Sendable {
        /// A notification, or a question to the client.
        case message(RPCMessage)
        /// Nothing has been said for a while.
        case quiet
    }

    enum Outcome: Sendable {
        case answered(JSON, status: Int)
        /// The client took the request back.
        case cancelled
        /// The client is not there any more.
        case left
    }

    /// Notifications that wait for a slow reader; further ones are dropped.
    private static let backlog = 256

    /// Told by whoever calls the request off; the first word counts.
    final class Ending: Sendable {
        private struct State {
            var outcome: Outcome?
            var questions: [Promise<Result<JSON, RPCError>>] = []
        }

        private let state = Mutex(State())
        private let events: AsyncStream<Event>.Continuation

        init(_ events: AsyncStream<Event>.Continuation) { self.events = events }

        func end(with new: Outcome) {
            let questions = state.withLock { state in
                if state.outcome == nil { state.outcome = new }
                defer { state.questions = [] }
                return state.questions
            }
            events.finish()
            for question in questions { question.settle(.success(.failure(Self.over))) }
        }

        /// Nil until it has ended.
        var value: Outcome? { state.withLock { $0.outcome } }

        /// Answers a question when nobody is there any more who could.
        func join(_ question: Promise<Result<JSON, RPCError>>) {
            let isOver = state.withLock { state in
                if state.outcome == nil { state.questions.append(question) }
                return state.outcome != nil
            }
            if isOver { question.settle(.success(.failure(Self.over))) }
        }

        func leave(_ question: Promise<Result<JSON, RPCError>>) {
            state.withLock { $0.questions.removeAll { $0 === question } }
        }

        private static let over = RPCError.inside("the one who asked for this is not there any more")
    }

    let ending: Ending
    private let events: AsyncStream<Event>
    private let told: AsyncStream<Event>.Continuation
    private let heartbeat: KeepAliveTimer

    init(_ heartbeat: KeepAliveTimer) {
        (events, told) = AsyncStream.makeStream(of: Event.self, bufferingPolicy: .bufferingOldest(Self.backlog))
        ending = Ending(told)
        self.heartbeat = heartbeat
    }

    /// - Returns: False where the request is over, or the client reads so slowly that it would never see it.
    @discardableResult
    func tell(_ message: RPCMessage) -> Bool {
        if case .enqueued = told.yield(.message(message)) { true } else { false }
    }

    /// Runs the request and writes what comes of it; a stream begins with `opening`, and soon where there is one. `work` is cancelled when nobody wants its answer any more; throws when
    /// the caller has gone.
    func run<Writer: MCPResponseBodyWriter & ~Copyable>(
        for call: MCPHTTPRequest,
        to writer: inout Writer,
        opening: [UInt8]? = nil,
        _ work: @escaping @Sendable () async -> (JSON, status: Int)
    ) async throws {
        let headers = call.headers
        var isStream = false
        call.onDeparture? { [ending] in ending.end(with: .left) }
        // Clients give up on an answer without a head after 30 s and more.
        let beats = headers.takesEvents ? heartbeat.join(isSoon: opening != nil) { [told] in told.yield(.quiet) } : nil
        defer { if let beats { heartbeat.leave(beats) } }
        try await withThrowingDiscardingTaskGroup { [ending] group in
            group.addTask {
                let (json, status) = await work()
                ending.end(with: .answered(json, status: status))
            }
            for await event in events where headers.takesEvents {
                if !isStream {
                    try await writer.begin(MCPHTTPResponse.events)
                    if let opening { try await writer.send(opening) }
                }
                isStream = true
                switch event {
                case .message(let message): try await writer.send(SSEEncoder.message(message.json))
                case .quiet: try await writer.send(SSEEncoder.comment)
                }
            }
            group.cancelAll()
        }
        try await finish(isStream: isStream, to: &writer)
    }

    private func finish<Writer: MCPResponseBodyWriter & ~Copyable>(
        isStream: Bool,
        to writer: inout Writer
    ) async throws {
        switch (ending.value, isStream) {
        case (.answered(let json, let status), false):
            try await writer.write(MCPHTTPResponse(status, json: json))
        case (.answered(let json, _), true):
            try await writer.send(SSEEncoder.message(json))
            try await writer.end()
        case (.cancelled, false), (nil, false):
            // Whoever cancels wants no answer; the HTTP request has to have one.
            try await writer.write(.accepted)
        case (.cancelled, true), (nil, true):
            try await writer.end()
        case (.left, _):
            throw CancellationError()
        }
    }
}

/// What a client hears of a call when its connection ended before the answer, as when the broker was killed.
///
/// The stream of an answer begins with an event whose id names the call (MCP 2025-11-25, transports, resumability). The client
/// shows that id when it comes back. So the broker needs no record of the call, and answers after a restart, too.
enum CallResumption {
    private static let prefix = "call-"
    /// In bytes of an event's id.
    private static let limit = 512
    /// The SDKs try twice; the broker may need a second to start again.
    private static let retry = 1_000

    /// The event that a stream begins with; nil where the call's id is too long.
    static func event(for id: RPCID) -> [UInt8]? {
        let name = prefix + Data(id.json.bytes).base64EncodedString()
        guard name.utf8.count <= limit else { return nil }
        return Array("id: \(name)\nretry: \(retry)\ndata:\n\n".utf8)
    }

    /// The answer to the call that an event's id names; nil where it names none.
    static func answer(to eventID: String) -> JSON? {
        guard eventID.hasPrefix(prefix), eventID.utf8.count <= limit,
            let bytes = Data(base64Encoded: String(eventID.dropFirst(prefix.count))),
            let id = (try? JSON(parsing: Array(bytes))).flatMap(RPCID.init)
        else { return nil }
        return RPCMessage.response(id: id, .success(.object(result))).json
    }

    private static let result = AppProxy.result(
        saying: """
            delivered, result unknown: the connection to the broker ended while this call was under way. The app may have \
            carried it out. Look at the app's state before you call again.
            """,
        code: "lost-after-delivery"
    )
}

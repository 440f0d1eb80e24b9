import Apps
import Model
import Synchronization
import SystemIO

/// The messages that wait for the reader of one response stream, in their order.
///
/// A slow reader gets the newest progress of each token, the first log messages, and each request of the app. A line
/// says how many log messages are missing. Each of the three kinds has a limit of its own.
final class ResponseEvents: Sendable {
    /// An event of the response stream.
    enum Event: Sendable {
        /// A notification for the client or a request to it.
        case message(RPCMessage)
        /// The stream has been idle; a comment is due.
        case keepAlive
    }

    /// The maximum number of waiting messages of each kind. Further progress replaces the newest one of its token, further
    /// log messages are counted, and further requests are refused.
    static let limit = 256

    private enum Kind: Hashable {
        case progress(JSON)
        case log
        case other
    }

    private struct State {
        var waiting: [(kind: Kind, message: RPCMessage)] = []
        var counts: [Kind: Int] = [:]
        var missingLogCount = 0
        var isKeepAliveDue = false
        var isFinished = false
        var reader: Promise<Void>?

        mutating func takeReader() -> Promise<Void>? {
            defer { reader = nil }
            return reader
        }

        /// Takes all waiting events, or registers the reader; no promise at the end.
        mutating func take() -> ([Event], Promise<Void>?) {
            var events = waiting.map { Event.message($0.message) }
            if missingLogCount > 0 { events.append(.message(.missingLogs(missingLogCount))) }
            if isKeepAliveDue, events.isEmpty, !isFinished { events.append(.keepAlive) }
            (waiting, counts, missingLogCount, isKeepAliveDue) = ([], [:], 0, false)
            guard events.isEmpty, !isFinished else { return (events, nil) }
            let promise = Promise<Void>()
            reader = promise
            return ([], promise)
        }
    }

    private let state = Mutex(State())

    /// Adds a message.
    ///
    /// - Returns: False if the stream has ended, or the message is dropped.
    func send(_ message: RPCMessage) -> Bool {
        let (isAccepted, reader) = state.withLock { state -> (Bool, Promise<Void>?) in
            guard !state.isFinished else { return (false, nil) }
            let kind = Self.kind(of: message)
            guard state.counts[kind, default: 0] >= Self.limit else {
                state.waiting.append((kind, message))
                state.counts[kind, default: 0] += 1
                return (true, state.takeReader())
            }
            switch kind {
            case .progress:
                guard let newest = state.waiting.lastIndex(where: { $0.kind == kind }) else { return (false, nil) }
                state.waiting[newest].message = message
                return (true, nil)
            case .log:
                state.missingLogCount += 1
                return (false, nil)
            case .other: return (false, nil)
            }
        }
        reader?.complete(.success(()))
        return isAccepted
    }

    /// Requests a comment.
    func keepAlive() {
        let reader = state.withLock { state in
            state.isKeepAliveDue = true
            return state.takeReader()
        }
        reader?.complete(.success(()))
    }

    /// Ends the stream. The reader still gets the waiting messages.
    func finish() {
        let reader = state.withLock { state in
            state.isFinished = true
            return state.takeReader()
        }
        reader?.complete(.success(()))
    }

    /// Returns the next events; nil at the end of the stream or after cancellation. Only one task may read.
    func next() async -> [Event]? {
        while true {
            let (events, wait) = state.withLock { $0.take() }
            if !events.isEmpty { return events }
            guard let wait, (try? await wait.value()) != nil else { return nil }
        }
    }

    private static func kind(of message: RPCMessage) -> Kind {
        guard case .notification(let notification) = message else { return .other }
        switch notification.method {
        case "notifications/progress": return .progress(notification.params?["progressToken"] ?? .null)
        case "notifications/message": return .log
        default: return .other
        }
    }
}

extension RPCMessage {
    /// The log message that stands for dropped ones.
    fileprivate static func missingLogs(_ count: Int) -> RPCMessage {
        let text = "\(count) log messages are missing here, because they came faster than they were read"
        let params: JSONObject = ["level": "warning", "logger": "patchbay", "data": .string(text)]
        return .notification(RPCNotification(method: "notifications/message", params: params))
    }
}

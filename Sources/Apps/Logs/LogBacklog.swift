import Model
import Synchronization

/// The events of a log that wait for its reader. A slow reader loses the oldest lines, and gets their number.
final class LogBacklog: Sendable {
    typealias Event = PhoneLogEvent<RawPhoneLogLine>

    /// The maximum number of events, and of bytes of their texts.
    static let limit = 2_000
    static let byteLimit = 1 << 20

    private struct State {
        var events: [Event] = []
        var bytes = 0
        var lost = 0
    }

    private let state = Mutex(State())
    private let news = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))

    func append(_ events: [Event]) {
        state.withLock { state in
            state.events += events
            state.bytes += events.reduce(0) { $0 + $1.size }
            if state.events.count > Self.limit || state.bytes > Self.byteLimit { Self.drop(&state) }
        }
        news.continuation.yield()
    }

    /// Drops the oldest lines, down to half of the limits: rarely, because the rest is moved.
    private static func drop(_ state: inout State) {
        var (count, notes) = (0, [Event]())
        while state.events.count - count > limit / 2 || state.bytes > byteLimit / 2 {
            let event = state.events[count]
            if case .note = event { notes.append(event) } else { state.lost += 1 }
            state.bytes -= event.size
            count += 1
        }
        state.events.replaceSubrange(..<count, with: notes.suffix(16))
    }

    /// Ends the log after the events that wait.
    func finish() { news.continuation.finish() }

    /// Waits for events. Returns nil at the end, and when cancelled. Called by one task.
    func next() async -> [Event]? {
        for await _ in news.stream {
            if let events = take() { return events }
        }
        return Task.isCancelled ? nil : take()
    }

    private func take() -> [Event]? {
        state.withLock { state in
            let events = (state.lost > 0 ? [.lost(state.lost)] : []) + state.events
            state = State()
            return events.isEmpty ? nil : events
        }
    }
}

extension PhoneLogEvent<RawPhoneLogLine> {
    fileprivate var size: Int {
        switch self {
        case .line(let line): line.text.utf8.count + line.tag.utf8.count + 128
        case .lost, .note: 0
        }
    }
}

import Model
import Synchronization

/// The newest lines of a log, and its end.
final class LogTail: Sendable {
    private struct State {
        var records: [LogRecord] = []
        var bytes = 0
        var position = PhoneLogPosition()
    }

    private let limit: Int
    private let byteLimit: Int
    private let state = Mutex(State())

    /// - Parameters:
    ///   - limit: The maximum number of lines.
    ///   - byteLimit: The maximum memory for lines in bytes.
    init(limit: Int, byteLimit: Int) { (self.limit, self.byteLimit) = (limit, byteLimit) }

    func append(_ records: [LogRecord]) {
        state.withLock { state in
            for record in records {
                _ = state.position.read(record.bytes, time: record.time)
                state.records.append(record)
                state.bytes += record.bytes.count
                // Rarely, because the rest is moved.
                if state.records.count > 2 * limit + 64 || state.bytes > 2 * byteLimit { trim(&state) }
            }
        }
    }

    private func trim(_ state: inout State) {
        var (start, kept) = (state.records.endIndex, 0)
        while start > 0, state.records.count - start < limit,
            kept + state.records[start - 1].bytes.count <= byteLimit
        {
            start -= 1
            kept += state.records[start].bytes.count
        }
        state.records.removeFirst(start)
        state.bytes = kept
    }

    /// The lines, the newest last, and the place after the last line that was read.
    var past: PhoneLogPast {
        state.withLock { state in
            trim(&state)
            return PhoneLogPast(lines: state.records.map(\.line), position: state.position)
        }
    }
}

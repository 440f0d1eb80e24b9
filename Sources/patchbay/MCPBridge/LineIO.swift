import Glibc
import Model
import SystemIO

/// Reads lines from a descriptor on demand.
struct LineInput: Sendable {
    private static let chunk = 64 << 10

    let descriptor: CInt
    private var lines = LineReader()
    private var hasEnded = false

    init(_ descriptor: CInt) { self.descriptor = descriptor }

    /// Returns the next non-empty line without its line break; nil at end of file, or if the task is cancelled. Skips a byte
    /// order mark at the beginning of a line.
    mutating func next() async -> [UInt8]? {
        while true {
            while let line = lines.next().map(trimmed) { if !line.isEmpty { return line } }
            if hasEnded {
                let line = trimmed(lines.rest())
                return line.isEmpty ? nil : line
            }
            guard await isReadable() else { return nil }
            let descriptor = descriptor
            let piece = await BlockingThread.value { Self.read(descriptor) }
            hasEnded = piece.isEmpty
            lines.append(piece)
        }
    }

    /// Waits for input. Returns false if the task is cancelled.
    private func isReadable() async -> Bool {
        do {
            try await Poller.shared.wait(for: .readable, of: descriptor)
            return true
        } catch {
            // A regular file is always readable, and epoll(7) does not support it.
            return !(error is CancellationError)
        }
    }

    private func trimmed(_ line: ArraySlice<UInt8>) -> [UInt8] {
        Array((line.last == UInt8(ascii: "\r") ? line.dropLast() : line).withoutByteOrderMark)
    }

    private static func read(_ descriptor: CInt) -> [UInt8] {
        var buffer = [UInt8](repeating: 0, count: chunk)
        while true {
            let count = Glibc.read(descriptor, &buffer, chunk)
            if count >= 0 { return Array(buffer.prefix(count)) }
            guard BlockingThread.shouldRetry(descriptor, POLLIN) else { return [] }
        }
    }
}

/// Writes messages as lines. Writes block while the client does not read; this applies back-pressure to the bridge.
actor LineWriter {
    private let descriptor: CInt

    init(_ descriptor: CInt) { self.descriptor = descriptor }

    /// Waits until the reader has closed the pipe or the socket. Returns at once if the descriptor is neither.
    ///
    /// - Throws: `BrokenPipe` then; `CancellationError`.
    nonisolated func waitForClose() async throws {
        do { try await Poller.shared.wait(for: .hungUp, of: descriptor) } catch is SocketError { return }
        throw BrokenPipe()
    }

    /// Writes a message and a line break.
    ///
    /// - Throws: `BrokenPipe`.
    func write(_ message: [UInt8]) throws {
        guard BlockingThread.write(message + [UInt8(ascii: "\n")], to: descriptor) else { throw BrokenPipe() }
    }
}

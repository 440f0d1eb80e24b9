import Glibc
import SystemIO

/// Runs blocking calls on dedicated threads, because they must not block Swift's cooperative thread pool.
enum BlockingThread {
    /// Runs the body on a new thread.
    static func start(_ body: @escaping @Sendable () -> Void) { startThread(named: "patchbay-io", body) }

    /// Runs the body on a new thread and returns its result.
    static func value<Value: Sendable>(of body: @escaping @Sendable () -> Value) async -> Value {
        await withCheckedContinuation { continuation in
            start { continuation.resume(returning: body()) }
        }
    }

    /// Returns true if a failed call must be repeated: after EINTR, or after EAGAIN on a non-blocking descriptor.
    ///
    /// Waits with poll(2) until the descriptor is ready.
    static func shouldRetry(_ descriptor: CInt, _ events: CInt) -> Bool {
        if errno == EINTR { return true }
        guard errno == EAGAIN else { return false }
        var ready = pollfd(fd: descriptor, events: Int16(events), revents: 0)
        poll(&ready, 1, -1)
        return true
    }

    /// Writes all bytes; returns false on an error.
    static func write(_ bytes: [UInt8], to descriptor: CInt) -> Bool { failure(writing: bytes, to: descriptor) == nil }

    /// Writes all bytes; returns the errno of an error, for example EPIPE if the reader closed the pipe.
    static func failure(writing bytes: [UInt8], to descriptor: CInt) -> CInt? {
        var sent = 0
        while sent < bytes.count {
            let written = bytes[sent...].withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if written >= 0 {
                sent += written
            } else if !shouldRetry(descriptor, POLLOUT) {
                return errno
            }
        }
        return nil
    }
}

/// Reads standard input.
enum StandardInput {
    /// Reads until end of file; blocks.
    static func all() -> [UInt8] {
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            let count = read(STDIN_FILENO, &buffer, buffer.count)
            if count > 0 {
                bytes += buffer.prefix(count)
            } else if count == 0 || !BlockingThread.shouldRetry(STDIN_FILENO, POLLIN) {
                return bytes
            }
        }
    }
}

import Glibc

/// A thread for calls that may block for as long as they like, which Swift's own threads must not.
enum BlockingThread {
    /// Runs the body on a thread of its own. When the process ends, it ends with it.
    static func start(_ body: @escaping @Sendable () -> Void) {
        final class Box: Sendable {
            let body: @Sendable () -> Void
            init(_ body: @escaping @Sendable () -> Void) { self.body = body }
        }
        var thread = pthread_t()
        let box = Unmanaged.passRetained(Box(body))
        let started = pthread_create(
            &thread,
            nil,
            { argument in
                if let argument { Unmanaged<Box>.fromOpaque(argument).takeRetainedValue().body() }
                return nil
            },
            box.toOpaque()
        )
        precondition(started == 0, "no thread could be started: errno \(started)")
        pthread_detach(thread)
    }

    /// Waits for what the body, on a thread of its own, returns.
    static func value<Value: Sendable>(of body: @escaping @Sendable () -> Value) async -> Value {
        await withCheckedContinuation { continuation in
            start { continuation.resume(returning: body()) }
        }
    }

    /// Whether a call that failed is to be made again: after a signal, or when a descriptor that somebody made non-blocking
    /// is ready.
    static func isPassing(_ descriptor: CInt, _ events: CInt) -> Bool {
        if errno == EINTR { return true }
        guard errno == EAGAIN else { return false }
        var ready = pollfd(fd: descriptor, events: Int16(events), revents: 0)
        poll(&ready, 1, -1)
        return true
    }

    /// Writes all of it; false when that fails.
    static func write(_ bytes: [UInt8], to descriptor: CInt) -> Bool { failure(writing: bytes, to: descriptor) == nil }

    /// Writes all of it, or says with which errno that failed: EPIPE when nobody reads any more.
    static func failure(writing bytes: [UInt8], to descriptor: CInt) -> CInt? {
        var sent = 0
        while sent < bytes.count {
            let written = bytes[sent...].withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if written >= 0 {
                sent += written
            } else if !isPassing(descriptor, POLLOUT) {
                return errno
            }
        }
        return nil
    }
}

/// What is piped into the program.
enum StandardInput {
    /// Everything up to its end; blocks until then.
    static func all() -> [UInt8] {
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            let count = read(STDIN_FILENO, &buffer, buffer.count)
            if count > 0 {
                bytes += buffer.prefix(count)
            } else if count == 0 || !BlockingThread.isPassing(STDIN_FILENO, POLLIN) {
                return bytes
            }
        }
    }
}

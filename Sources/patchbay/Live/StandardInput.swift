import Glibc

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

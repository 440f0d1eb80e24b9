import Glibc

/// Standard output, a message a line. A client that does not read holds up what it would not read anyway.
actor LineWriter {
    private let descriptor: CInt

    init(_ descriptor: CInt) { self.descriptor = descriptor }

    /// - Throws: `BrokenPipe`.
    func write(_ message: [UInt8]) throws {
        guard BlockingThread.write(message + [UInt8(ascii: "\n")], to: descriptor) else { throw BrokenPipe() }
    }
}

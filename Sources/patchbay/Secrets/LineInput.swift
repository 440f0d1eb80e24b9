import Glibc

/// One line of a descriptor, read with calls that block.
enum LineInput {
    /// - Returns: What stands before the first line break or the end; nil when there is nothing at all, or more than the
    ///   limit without a line break.
    static func read(from descriptor: CInt, limit: Int) -> [UInt8]? {
        var line: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4_096)
        while line.count <= limit {
            let count = Glibc.read(descriptor, &buffer, buffer.count)
            if count < 0 {
                guard BlockingThread.isPassing(descriptor, POLLIN) else { return nil }
                continue
            }
            line += buffer[..<count]
            if let end = line.firstIndex(of: UInt8(ascii: "\n")) { return Array(line[..<end]) }
            if count == 0 { return line.isEmpty ? nil : line }
        }
        return nil
    }
}

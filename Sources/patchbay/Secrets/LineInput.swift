import Glibc

/// One line of a descriptor, read with calls that block.
enum LineInput: Equatable {
    /// What stands before the first line break or the end.
    case line([UInt8])
    /// There is nothing at all, or it cannot be read.
    case nothing
    /// More than the limit, without a line break.
    case tooLong

    static func read(from descriptor: CInt, limit: Int) -> LineInput {
        var line: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4_096)
        while line.count <= limit {
            let count = Glibc.read(descriptor, &buffer, buffer.count)
            if count < 0 {
                guard BlockingThread.isPassing(descriptor, POLLIN) else { return .nothing }
                continue
            }
            line += buffer[..<count]
            if let end = line.firstIndex(of: UInt8(ascii: "\n")) { return .line(Array(line[..<end])) }
            if count == 0 { return line.isEmpty ? .nothing : .line(line) }
        }
        return .tooLong
    }
}

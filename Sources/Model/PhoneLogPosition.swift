/// A place in a phone's log, after which reading goes on. Has no I/O.
///
/// A log is continued by the time of its last line, because its lines have no numbers. Lines of that millisecond come
/// again then, and are recognised.
package struct PhoneLogPosition: Hashable, Sendable {
    /// The maximum number of lines of one millisecond that are recognised.
    private static let limit = 4_096

    /// The phone's time of the last line, in ASCII; empty before the first one.
    package private(set) var time: [UInt8] = []
    /// The number of lines at this time, by their hash values.
    private var seen: [Int: Int] = [:]
    /// The same of the lines that come again.
    private var repeated: [Int: Int] = [:]

    package init() {}

    /// Expects the lines of the last time again.
    package mutating func resume() { repeated = seen }

    /// Counts a line of the phone. Returns false for one that was read before.
    package mutating func read(_ line: [UInt8], time: Range<Int>) -> Bool {
        let hash = line.hashValue
        if line[time].elementsEqual(self.time) {
            if let count = repeated[hash], count > 0 {
                repeated[hash] = count - 1
                return false
            }
        } else {
            (self.time, seen, repeated) = (Array(line[time]), [:], [:])
        }
        if seen.count < Self.limit { seen[hash, default: 0] += 1 }
        return true
    }
}

import Glibc
import SystemIO

/// A line of a program's output, without its line feed.
package struct Line: Sendable, Equatable {
    package enum Source: Sendable {
        case output
        case errors
    }

    package let source: Source
    package let text: String
    /// The time at which the line was read.
    package let time: ContinuousClock.Instant

    /// Splits the input into lines on its own thread until every writer has closed.
    static func read(
        _ descriptor: consuming Descriptor,
        _ source: Source,
        into replay: Replay<Line>,
        atEnd: @escaping @Sendable () -> Void
    ) {
        let number = descriptor.release()
        startThread(named: "rig-lines") {
            let descriptor = Descriptor(owning: number)
            var pending: [UInt8] = []
            var buffer = [UInt8](repeating: 0, count: 16384)
            while true {
                let count = Glibc.read(descriptor.number, &buffer, buffer.count)
                if count < 0, errno == EINTR { continue }
                guard count > 0 else { break }
                pending += buffer.prefix(count)
                while let feed = pending.firstIndex(of: UInt8(ascii: "\n")) {
                    let text = String(decoding: pending[..<feed], as: UTF8.self)
                    replay.say(Line(source: source, text: text, time: .now))
                    pending.removeSubrange(...feed)
                }
            }
            if !pending.isEmpty {
                replay.say(Line(source: source, text: String(decoding: pending, as: UTF8.self), time: .now))
            }
            atEnd()
        }
    }
}

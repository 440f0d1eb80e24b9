package import FoundationEssentials
import Glibc

/// Times for people: in the zone of this machine, with the offset, as in `2026-11-22T21:18:39+0100`.
package enum LocalTime {
    package static var now: String { text(of: time(nil)) }

    package static func text(of date: Date) -> String { text(of: time_t(date.timeIntervalSince1970)) }

    private static func text(of seconds: time_t) -> String {
        var (seconds, parts) = (seconds, tm())
        localtime_r(&seconds, &parts)
        var buffer = [CChar](repeating: 0, count: 32)
        let length = strftime(&buffer, buffer.count, "%Y-%m-%dT%H:%M:%S%z", &parts)
        return String(decoding: buffer.prefix(length).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}

import FoundationEssentials

/// A moment on the clock that never runs backwards, in milliseconds since 1970.
package struct MonotonicTime: Hashable, Sendable, Comparable {
    package let milliseconds: Int64

    package init(milliseconds: Int64) { self.milliseconds = milliseconds }

    package static func < (one: MonotonicTime, other: MonotonicTime) -> Bool { one.milliseconds < other.milliseconds }

    static func + (time: MonotonicTime, seconds: Int) -> MonotonicTime {
        MonotonicTime(milliseconds: time.milliseconds + Int64(seconds) * 1_000)
    }

    static func - (one: MonotonicTime, other: MonotonicTime) -> Duration {
        .milliseconds(one.milliseconds - other.milliseconds)
    }

    /// As people read it.
    var date: Date { Date(timeIntervalSince1970: Double(milliseconds) / 1_000) }
}

extension MonotonicTime: Codable {
    package init(from decoder: any Decoder) throws {
        milliseconds = try decoder.singleValueContainer().decode(Int64.self)
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(milliseconds)
    }
}

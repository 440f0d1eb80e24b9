import FoundationEssentials
import Glibc
import Model

/// Numbers and times as people say them.
enum Formatting {
    /// `3 s ago`.
    static func ago(_ date: Date, now: Date = Date()) -> String {
        let seconds = now.timeIntervalSince(date)
        return seconds < 1 ? "now" : "\(duration(seconds)) ago"
    }

    /// The largest whole unit: `59 s`, `2 min`, `5 h`, `3 d`.
    static func duration(_ seconds: Double) -> String {
        switch seconds {
        case ..<60: "\(Int(max(0, seconds))) s"
        case ..<3_600: "\(Int(seconds / 60)) min"
        case ..<86_400: "\(Int(seconds / 3_600)) h"
        default: "\(Int(seconds / 86_400)) d"
        }
    }

    /// `18:03:59`, where the reader is.
    static func clock(_ date: Date) -> String {
        var seconds = time_t(date.timeIntervalSince1970)
        var parts = tm()
        localtime_r(&seconds, &parts)
        return [parts.tm_hour, parts.tm_min, parts.tm_sec].map { $0 < 10 ? "0\($0)" : "\($0)" }.joined(separator: ":")
    }

    /// `512 B`, `1.5 MB`; decimal units, as network people count.
    static func bytes(_ count: UInt64) -> String {
        var (value, unit) = (Double(count), 0)
        let units = ["B", "kB", "MB", "GB", "TB"]
        while value >= 999.95, unit < units.count - 1 {
            value /= 1_000
            unit += 1
        }
        if unit == 0 { return "\(count) B" }
        let tenths = Int((value * 10).rounded())
        return "\(tenths / 10).\(tenths % 10) \(units[unit])"
    }

    /// `1 phone`, `2 phones`.
    static func count(_ number: Int, _ noun: String) -> String { "\(number) \(noun)\(number == 1 ? "" : "s")" }

    /// A local address as another program takes it: `127.0.0.1:8080`, or a socket's path.
    static func address(_ address: ListenAddress) -> String {
        switch address {
        case .tcp(nil, let port): "localhost:\(port)"
        case .tcp(let host?, let port): host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
        case .unix(let path): path
        }
    }

    /// Where an endpoint is known from; what a person wrote down is static, in the configuration or by `add`.
    static func source(_ source: Sighting.Source) -> String {
        switch source {
        case .config: "static"
        case .bonjour, .usb: source.rawValue
        }
    }

    /// `refused` → `refused`, `deviceAbsent` → `phone not plugged in`; a reason of a newer broker as it is.
    static func failure(_ reason: String) -> String {
        switch DialError.Reason(rawValue: reason) {
        case .deviceAbsent: "phone not plugged in"
        case .usbmuxdAbsent: "usbmuxd not running"
        case .timedOut: "timed out"
        case .noRoute: "no route"
        case .limit: "over a limit"
        case .foreignUser: "of another user"
        case .browser: "from a web page"
        case .cut: "cut in mid-stream"
        case .refused, .unreachable, .forbidden, .failed, nil: reason
        }
    }

    static func target(_ target: TunnelTarget) -> String {
        switch target {
        case .device(let udid, let port): "\(udid):\(port)"
        case .endpoint(let id): id.text
        }
    }
}

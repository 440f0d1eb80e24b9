import FoundationEssentials
import Glibc
import Model

/// Formats values for text output.
enum Formatting {
    /// Formats an age: `3 s ago`, or `now` below 1 s.
    static func ago(_ date: Date, now: Date = Date()) -> String {
        let seconds = now.timeIntervalSince(date)
        return seconds < 1 ? "now" : "\(duration(seconds)) ago"
    }

    /// Formats the time when a server was last reached or reported: `3 s ago`, `never`, `not tried yet`.
    ///
    /// It is `-` for an endpoint of another host, whose broker does not share the time.
    static func seen(_ endpoint: Endpoint, now: Date) -> String {
        if let date = endpoint.lastSeenAt { return ago(date, now: now) }
        if endpoint.id.host != nil { return "-" }
        return endpoint.reason == Endpoint.notTriedYet ? Endpoint.notTriedYet : "never"
    }

    /// Formats a duration in its largest whole unit: `59 s`, `2 min`, `5 h`, `3 d`. More than 95 % of a unit count as
    /// a whole one, so a new grant of 8 h does not expire in 7 h.
    static func duration(_ seconds: Double) -> String {
        func whole(_ unit: Double) -> Int { Int(max(0, seconds / unit + 0.05)) }
        if whole(1) < 60 { return "\(whole(1)) s" }
        if whole(60) < 60 { return "\(whole(60)) min" }
        if whole(3_600) < 24 { return "\(whole(3_600)) h" }
        return "\(whole(86_400)) d"
    }

    /// Formats a time in the local time zone: `18:03:59`.
    static func clock(_ date: Date) -> String {
        var seconds = time_t(date.timeIntervalSince1970)
        var parts = tm()
        localtime_r(&seconds, &parts)
        return [parts.tm_hour, parts.tm_min, parts.tm_sec].map { $0 < 10 ? "0\($0)" : "\($0)" }.joined(separator: ":")
    }

    /// Formats a byte count in decimal units: `512 B`, `1.5 MB`.
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

    /// Formats a number with its noun: `1 device`, `2 devices`.
    static func count(_ number: Int, _ noun: String, plural: String? = nil) -> String {
        "\(number) \(number == 1 ? noun : plural ?? "\(noun)s")"
    }

    /// Formats a local address in the form that other programs accept: `127.0.0.1:8080`, or a socket path.
    static func address(_ address: ListenAddress) -> String {
        switch address {
        case .tcp(nil, let port): "localhost:\(port)"
        case .tcp(let host?, let port): host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
        case .unix(let path): path
        }
    }

    /// Formats a source. Endpoints of the configuration and of `patchbay add` are `static`.
    static func source(_ source: Sighting.Source) -> String {
        switch source {
        case .config: "static"
        case .bonjour, .usbmuxd, .adb, .debuglink, .registration: source.rawValue
        }
    }

    /// Translates a dial failure: `deviceAbsent` to `phone not plugged in`. Returns unknown reasons unchanged.
    static func failure(_ reason: String) -> String {
        switch DialError.Reason(rawValue: reason) {
        case .deviceAbsent: "phone not plugged in"
        case .usbmuxdAbsent: "usbmuxd not running"
        case .timedOut: "timed out"
        case .noRoute: "no route"
        case .limit: "limit reached"
        case .foreignUser: "client of another user"
        case .leased: "leased by another client"
        case .browser: "request of a web page"
        case .linkLost: "connection lost"
        case .refused, .unreachable, .forbidden, .failed, nil: reason
        }
    }

    static func target(_ target: TunnelTarget) -> String {
        switch target {
        case .device(let route): "\(route.udid):\(route.socket)"
        case .endpoint(let id): id.text
        }
    }
}

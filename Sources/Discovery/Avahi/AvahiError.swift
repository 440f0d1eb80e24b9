import CAvahi
import Model

/// The reason why a connection to Avahi can no longer be used.
enum AvahiError: Error, Hashable, Sendable, CustomStringConvertible {
    /// D-Bus is gone or was never available. Only a new connection can help.
    case unreachable(reason: String)
    /// avahi-daemon exists but did not answer a call within `callLimit`.
    case hung(seconds: Int)
    /// avahi-daemon did not appear within the time limit of a connection attempt.
    case absent

    /// The longest time a call may take before the daemon counts as stopped or deadlocked: 5 s.
    ///
    /// A working daemon was seen to take 11 s under a storm of 2,000 services. Reconnecting is right in that case, too.
    static let callLimit = Duration.seconds(5)

    /// The connection failure that an error code stands for; nil if only the call failed.
    init?(code: CInt) {
        switch Int(code) {
        case Int(AVAHI_ERR_DBUS_ERROR), Int(AVAHI_ERR_DISCONNECTED), Int(AVAHI_ERR_NO_DAEMON):
            self = .unreachable(reason: AvahiString.error(code))
        default: return nil
        }
    }

    var description: String {
        switch self {
        case .unreachable(let reason): reason
        case .hung(let seconds): "avahi-daemon did not answer for \(seconds) s"
        case .absent: "avahi-daemon did not appear on D-Bus"
        }
    }
}

/// Converts strings and string lists to and from libavahi-common.
enum AvahiString {
    /// The description of an error code (avahi_strerror).
    static func error(_ code: CInt) -> String { String(cString: avahi_strerror(code)) }

    /// The next name to try after a collision: `Name #2`, truncated between characters to 63 bytes
    /// (avahi_alternative_service_name).
    static func alternative(to name: String) -> String {
        guard let next = avahi_alternative_service_name(name) else { return name }
        defer { avahi_free(next) }
        return String(cString: next)
    }

    /// Passes a TXT record to `body` as the list that the entry-group calls expect.
    ///
    /// Each item is added at the front, and the entry-group calls reverse the list again. The wire order is therefore
    /// the record's order. Reversing the list here would publish the items backwards (avahi/avahi#436).
    static func withList<Result>(
        _ txt: TXTRecord,
        _ body: (UnsafeMutablePointer<AvahiStringList>?) -> Result
    ) -> Result {
        var list: UnsafeMutablePointer<AvahiStringList>?
        for item in txt.items { list = avahi_string_list_add_arbitrary(list, item, item.count) }
        defer { avahi_string_list_free(list) }
        return body(list)
    }

    /// The strings of a received list in wire order.
    static func items(of list: UnsafeMutablePointer<AvahiStringList>?) -> [[UInt8]] {
        var items: [[UInt8]] = []
        var next = list
        while let item = next {
            let text = UnsafeBufferPointer(
                start: avahi_string_list_get_text(item),
                count: avahi_string_list_get_size(item)
            )
            items.append(Array(text))
            next = avahi_string_list_get_next(item)
        }
        return items
    }
}

import CAvahi
import Model

/// Why a connection to Avahi cannot be used any more.
enum AvahiError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The bus is gone or was never there; only another connection helps.
    case unreachable(reason: String)
    /// avahi-daemon is there and does not answer: a call took longer than anybody should wait.
    case hung(seconds: Int)
    /// avahi-daemon has not appeared within the time given to a connection.
    case absent

    /// A call that takes longer has met a stopped or deadlocked daemon; the slowest honest one measured took 11 s under a
    /// storm of 2,000 services, and starting afresh is right then, too.
    static let callLimit = Duration.seconds(5)

    /// The fault that an error code of a call stands for; nil when the call alone failed.
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

/// Text that libavahi-common makes or takes.
enum AvahiString {
    /// What an error code means, in Avahi's words (avahi_strerror).
    static func error(_ code: CInt) -> String { String(cString: avahi_strerror(code)) }

    /// The next name to try after a collision: `Name #2`, cut between characters to 63 bytes
    /// (avahi_alternative_service_name).
    static func alternative(to name: String) -> String {
        guard let next = avahi_alternative_service_name(name) else { return name }
        defer { avahi_free(next) }
        return String(cString: next)
    }

    /// Lends the strings of a record as the list that the entry-group calls take.
    ///
    /// Each addition goes to the list's front and the calls turn the list round themselves, so that the record's order is
    /// the order on the wire; turning it here as well would publish it backwards (avahi/avahi#436).
    static func withList<Result>(
        _ txt: TXTRecord,
        _ body: (UnsafeMutablePointer<AvahiStringList>?) -> Result
    ) -> Result {
        var list: UnsafeMutablePointer<AvahiStringList>?
        for item in txt.items { list = avahi_string_list_add_arbitrary(list, item, item.count) }
        defer { avahi_string_list_free(list) }
        return body(list)
    }

    /// The strings of a received list, in the order of the wire.
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

import CAvahi
import Model

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

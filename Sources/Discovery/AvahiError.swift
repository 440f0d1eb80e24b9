import CAvahi

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

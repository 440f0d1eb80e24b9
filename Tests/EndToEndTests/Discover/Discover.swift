import TestSupport
import Testing

/// Bonjour with the real avahi-daemon, in private networks with a private D-Bus.
///
/// Serialized as a whole: libdbus reads the system bus address once per process, so all tests share one (`BusSwitch`).
@Suite(.serialized, .needs(.namespaces, .avahi), .timeLimit(.minutes(3)))
enum Discover {}

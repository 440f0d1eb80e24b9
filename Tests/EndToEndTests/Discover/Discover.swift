import TestSupport
import Testing

/// Bonjour against the real avahi-daemon, in private networks with a private D-Bus.
///
/// Serialised as a whole: libdbus reads the address of the system bus once for each process, so that all tests share one
/// (`BusSwitch`).
@Suite(.serialized, .needs(.namespaces, .avahi), .timeLimit(.minutes(3)))
enum Discover {}

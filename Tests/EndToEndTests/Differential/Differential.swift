import TestSupport
import Testing

/// The real iproxy and `patchbay iproxy` with the same command line and the same phones.
///
/// Serialized, because most tests measure time.
@Suite(.serialized, .needs(.usbmuxd, .iproxy), .timeLimit(.minutes(3))) enum Differential {}

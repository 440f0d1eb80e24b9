import TestSupport
import Testing

/// The real iproxy and `patchbay iproxy`, with the same command line on the same phones.
///
/// One at a time: most of it is about time.
@Suite(.serialized, .needs(.usbmuxd, .iproxy), .timeLimit(.minutes(3))) enum Differential {}

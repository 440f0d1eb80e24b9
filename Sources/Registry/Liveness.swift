import Model

/// The liveness of one endpoint according to probes, independent of its sources.
///
/// Avahi reports a peer that vanished without a goodbye after 125 s at the earliest. Probes detect it sooner: one
/// failure makes an endpoint suspect, `failuresToOffline` consecutive ones make it offline.
struct Liveness: Hashable, Sendable {
    /// Three failures take at most 15 s: 4 s between them, and 3 s each to detect a dead machine (EHOSTUNREACH by ARP).
    static let failuresToOffline = 3

    private(set) var failures = 0
    private(set) var lastFailure: DialError?

    mutating func succeeded() {
        failures = 0
        lastFailure = nil
    }

    mutating func failed(_ failure: DialError) {
        failures += 1
        lastFailure = failure
    }

    /// The state of an endpoint that at least one source reports.
    var state: Endpoint.State {
        switch failures {
        case 0: .online
        case ..<Self.failuresToOffline: .suspect
        default: .offline
        }
    }
}

import Model

/// What the probes say about one endpoint, apart from what its sources say.
///
/// Avahi tells of a peer that vanished without a goodbye after 125 s at best, so proof comes from our own probes: one that
/// fails makes an endpoint suspect, `failuresToOffline` in a row make it offline.
struct Liveness: Hashable, Sendable {
    /// Three failures 4 s apart are at most 15 s, with a dead host's 3 s (EHOSTUNREACH by ARP) each counted in.
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

    /// The state of an endpoint that some source sees.
    var state: Endpoint.State {
        switch failures {
        case 0: .online
        case ..<Self.failuresToOffline: .suspect
        default: .offline
        }
    }
}

import Model
import Synchronization

/// The hosts that listed phones last, also after the end of their entries, for the messages of failed connections.
final class LastPhoneHosts: Sendable {
    /// The maximum number of phones. Further ones have no host in messages.
    private static let limit = 4_096

    private let hosts = Mutex<[UDID: HostName]>([:])

    func record(_ udid: UDID, on host: HostName) {
        hosts.withLock { hosts in
            if hosts[udid] != nil || hosts.count < Self.limit { hosts[udid] = host }
        }
    }

    /// Returns the host that listed a phone last; nil if no other host did.
    func host(of udid: UDID) -> HostName? { hosts.withLock { $0[udid] } }
}

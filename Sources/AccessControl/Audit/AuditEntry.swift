import Crypto
import FoundationEssentials
package import Model
import Synchronization

/// An access control event, allowed or denied, for the audit log.
package struct AuditEvent: Hashable, Sendable, Codable {
    package enum Action: String, Hashable, Sendable, Codable {
        case invited, redeemed, refused, burnt, revoked, expired
        /// An owner created a grant that is bound to a socket.
        case granted
        /// An owner asked for a code for the dashboard, and signed in with it.
        case dashboardCode = "dashboard-code"
        case signedIn = "signed-in"
        case approved, denied
        case endpointApproved = "endpoint-approved"
        case endpointDenied = "endpoint-denied"
        case approvalWithdrawn = "approval-withdrawn"
        case secretSet = "secret-set"
        case secretForgotten = "secret-forgotten"
        case secretRead = "secret-read"
        /// A client reads the log of an app, or of a phone.
        case logRead = "log-read"
        case clockRecovered = "clock-recovered"
        case repaired
        /// A call of an app's tool through the broker.
        case called
        /// A client took a lease.
        case leased
        /// A lease ended: its holder gave it up, or the broker ended it for the reason in `detail`.
        case leaseEnded = "lease-ended"
        /// An owner ended another client's lease.
        case leaseBroken = "lease-broken"
        /// The oldest entries were deleted, as the retention of the configuration wants.
        case pruned
        /// An owner created the team of this host, joined a team, or left it.
        case teamCreated = "team-created"
        case teamJoined = "team-joined"
        case teamLeft = "team-left"
        /// The authority of the team created or revoked an invite for hosts, admitted a host with it, or removed a host.
        case hostInvited = "host-invited"
        case hostInviteRevoked = "host-invite-revoked"
        case hostAdmitted = "host-admitted"
        case hostRemoved = "host-removed"
        /// The authority issued the certificates of an etcd node, or renewed that of a host.
        case certificateIssued = "certificate-issued"
    }

    let action: Action
    let who: AuditActor
    let from: RequestSource
    var invite: String?
    var grant: String?
    /// IDs of the invites and grants that ended.
    var ended: [String]?
    var endpoint: EndpointID?
    /// The called tool of the endpoint, or the name of a new grant, a team or a host. `bytes` is the size of the
    /// tool's result.
    var subject: SanitizedText?
    var bytes: Int?
    /// The ID of the client's trace (W3C Trace Context).
    var trace: String?
    /// Number of redemptions of the invite, including this one.
    var useCount: Int?
    /// The reason in Patchbay's words; never text that the caller sent.
    var detail: String?
    /// True for events that need attention.
    var alert: Bool?
    /// Number of the last deleted entry.
    var through: Int?
    /// The wall clock's time of an event that was buffered; nil for an event that is written at once. The entry has it as
    /// `wallTime`.
    var occurredAt: Date?

    private enum CodingKeys: CodingKey {
        case action, who, from, invite, grant, ended, endpoint, subject, bytes, trace, useCount, detail, alert, through
    }

    init(
        _ action: Action,
        by who: AuditActor,
        from: RequestSource,
        invite: String? = nil,
        grant: String? = nil,
        ended: [String]? = nil,
        endpoint: EndpointID? = nil,
        detail: String? = nil
    ) {
        self.action = action
        self.who = who
        self.from = from
        self.invite = invite
        self.grant = grant
        self.ended = ended
        self.endpoint = endpoint
        self.detail = detail
    }
}

/// One line of the audit log: an event, its time, and the hash of the previous line.
struct AuditEntry: Hashable, Sendable, Codable {
    /// Position of the log: number and hash of the last line.
    struct Head: Hashable, Sendable, Codable {
        let number: Int
        let hash: String

        static let none = Head(number: 0, hash: String(repeating: "0", count: 64))
    }

    let number: Int
    /// SHA-256 of the previous line, in hexadecimal.
    let previousHash: String
    /// Time of the event: by the wall clock (`wallTime`) and by `MonotonicWallClock` (`logicalTime`).
    let wallTime: Date
    let logicalTime: MonotonicTime
    let event: AuditEvent

    /// Returns the encoded line without its newline, and the log's position after the line.
    func encoded() throws -> (text: Data, head: Head) {
        let text = try JSONCoding.encoder().encode(self)
        return (text, Head(number: number, hash: Self.hash(of: text)))
    }

    static func hash(of text: some DataProtocol) -> String {
        SHA256.hash(data: text).reduce(into: "") { text, byte in
            text += byte < 16 ? "0" + String(byte, radix: 16) : String(byte, radix: 16)
        }
    }
}

/// The audit payload of one endpoint call. Contains neither arguments nor results.
package struct EndpointCallEvent: Hashable, Sendable {
    package let endpoint: EndpointID
    /// The name of the tool or of the request.
    package let subject: SanitizedText
    /// Size of the result in bytes.
    package let bytes: Int
    /// The outcome, as one of Patchbay's own words.
    package let outcome: String
    /// The ID of the client's trace; nil without one.
    package let trace: String?

    package init(of endpoint: EndpointID, subject: SanitizedText, bytes: Int, outcome: String, trace: String? = nil) {
        self.endpoint = endpoint
        self.subject = subject
        self.bytes = bytes
        self.outcome = outcome
        self.trace = trace
    }
}

/// A thread-safe buffer for audit events of endpoint calls. `AccessStore` writes them together. Appending never blocks.
final class AuditBuffer: Sendable {
    private struct State {
        var events: [AuditEvent] = []
        /// Notified when the buffer gets its first event and when `flushThreshold` is reached.
        var wakeUp: AsyncStream<Void>.Continuation?
    }

    /// Number of events that triggers an immediate write. While the disk fails, the buffer keeps four times as many.
    static let flushThreshold = 4_096

    private let state = Mutex(State())

    var events: [AuditEvent] { state.withLock { $0.events } }
    var count: Int { state.withLock { $0.events.count } }

    /// Appends an event. Returns false when the buffer is full and the event is dropped.
    func append(_ event: AuditEvent) -> Bool {
        let (isBuffered, wakeUp) = state.withLock { state -> (Bool, AsyncStream<Void>.Continuation?) in
            guard state.events.count < 4 * Self.flushThreshold else { return (false, nil) }
            state.events.append(event)
            let needsWakeUp = state.events.count == 1 || state.events.count == Self.flushThreshold
            return (true, needsWakeUp ? state.wakeUp : nil)
        }
        wakeUp?.yield()
        return isBuffered
    }

    /// Removes the first events, which are written.
    func remove(first count: Int) { state.withLock { $0.events.removeFirst(count) } }

    /// Sets the stream to notify.
    func setWakeUp(_ wakeUp: AsyncStream<Void>.Continuation) { state.withLock { $0.wakeUp = wakeUp } }
}

import Crypto
import FoundationEssentials
package import Model
import Synchronization

/// Something that pairing did, or refused, for the log that people read afterwards.
struct AuditEvent: Hashable, Sendable, Codable {
    enum Action: String, Hashable, Sendable, Codable {
        case invited, redeemed, refused, burnt, rotated, reused, revoked, expired
        case approved, denied
        case endpointApproved = "endpoint-approved"
        case approvalWithdrawn = "approval-withdrawn"
        case secretSet = "secret-set"
        case secretForgotten = "secret-forgotten"
        case clockRecovered = "clock-recovered"
        case repaired
        /// An app's tool, through the broker.
        case called
    }

    let action: Action
    let who: AuditActor
    let from: RequestSource
    var invite: String?
    var grant: String?
    /// Everything that ended with it: invites and grants.
    var ended: [String]?
    var endpoint: EndpointID?
    /// Which tool of the endpoint, and the bytes of its answer.
    var subject: SanitizedText?
    var bytes: Int?
    /// How often the invite has been used, this time included.
    var used: Int?
    /// Why, in words; never anything that the caller sent.
    var detail: String?
    /// Somebody should look.
    var isAlert: Bool?

    init(_ action: Action, by who: AuditActor, from: RequestSource) {
        self.action = action
        self.who = who
        self.from = from
    }
}

/// One line of the audit log: an event, when it was, and the hash of the line before.
struct AuditEntry: Hashable, Sendable, Codable {
    /// Where the log stands: the last line's number and hash.
    struct Head: Hashable, Sendable, Codable {
        let number: Int
        let hash: String

        static let none = Head(number: 0, hash: String(repeating: "0", count: 64))
    }

    let number: Int
    /// SHA-256 of the line before, in hexadecimal.
    let before: String
    /// When, by the wall clock and by the one that counts.
    let wall: Date
    let effective: MonotonicTime
    let event: AuditEvent

    /// The line as it is written, without its end, and where the log stands after it.
    func written() throws -> (text: Data, head: Head) {
        let text = try JSONCoding.encoder().encode(self)
        return (text, Head(number: number, hash: Self.hash(of: text)))
    }

    static func hash(of text: some DataProtocol) -> String {
        SHA256.hash(data: text).reduce(into: "") { text, byte in
            text += byte < 16 ? "0" + String(byte, radix: 16) : String(byte, radix: 16)
        }
    }
}

/// One call of an endpoint, as much of it as is written down: never what was sent and never what came back.
package struct EndpointCallEvent: Hashable, Sendable {
    package let endpoint: EndpointID
    /// The tool, or what else was asked for.
    package let subject: SanitizedText
    /// Of the answer.
    package let bytes: Int
    /// How it ended, as a word of ours.
    package let outcome: String

    package init(of endpoint: EndpointID, subject: SanitizedText, bytes: Int, outcome: String) {
        self.endpoint = endpoint
        self.subject = subject
        self.bytes = bytes
        self.outcome = outcome
    }
}

/// Lines for the audit log that may wait a moment: put in from any thread without waiting, taken out and written together.
final class AuditBuffer: Sendable {
    private struct State {
        var notes: [AuditEvent] = []
        /// Told when there is something to write, or much.
        var wakeUp: AsyncStream<Void>.Continuation?
    }

    /// With so many of them they are written at once. While the disk takes nothing, four times as many are kept.
    static let plenty = 4_096

    private let state = Mutex(State())

    var notes: [AuditEvent] { state.withLock { $0.notes } }
    var count: Int { state.withLock { $0.notes.count } }

    /// False when there is no room, and the line is lost.
    func add(_ note: AuditEvent) -> Bool {
        let (isKept, wakeUp) = state.withLock { state -> (Bool, AsyncStream<Void>.Continuation?) in
            guard state.notes.count < 4 * Self.plenty else { return (false, nil) }
            state.notes.append(note)
            return (true, state.notes.count == 1 || state.notes.count == Self.plenty ? state.wakeUp : nil)
        }
        wakeUp?.yield()
        return isKept
    }

    /// Takes out the first ones, which are written.
    func remove(first count: Int) { state.withLock { $0.notes.removeFirst(count) } }

    /// Whom to wake from now on.
    func wake(_ wakeUp: AsyncStream<Void>.Continuation) { state.withLock { $0.wakeUp = wakeUp } }
}

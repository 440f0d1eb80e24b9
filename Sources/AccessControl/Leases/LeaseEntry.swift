import FoundationEssentials
import Model
import SystemIO

/// A request for a lease.
struct LeaseRequest: Sendable {
    /// A number that identifies the request.
    let ticket: UInt64
    let target: LeaseTarget
    let endpoint: EndpointID
    let holder: LeaseHolder
    let length: Duration
    let note: SanitizedText?
    /// The number of the lease to renew. A request with it never takes another lease.
    var renewing: UInt64?
}

/// A lease that is held, or pending until the changing calls of other clients have ended and its phone is claimed.
struct LeaseEntry: Sendable {
    let number: UInt64
    let request: LeaseRequest
    /// The covered endpoints without a cable, and at most one phone.
    var targets: Set<LeaseTarget> = []
    /// The length after the last renewal.
    var length: Duration
    /// The note of the last request that had one.
    var note: SanitizedText?
    var start: Duration
    var end: Duration
    var isPending = true

    var holder: LeaseHolder { request.holder }
    /// The covered phone; nil if none is known.
    var device: UDID? { targets.lazy.compactMap(\.device).first }
}

/// The current time on the clock of the leases and on the wall clock.
struct LeaseTime: Sendable {
    let elapsed: Duration
    let date: Date

    /// Returns the date of a time on the clock of the leases.
    func date(of time: Duration) -> Date { date + (time - elapsed) / .seconds(1) }
}

/// A lease as clients see it.
extension LeaseEntry {
    var id: String { "l\(number)" }

    /// Returns the number in an ID of this broker; 0, which no lease has, for other text.
    static func number(of id: String) -> UInt64 { id.hasPrefix("l") ? UInt64(id.dropFirst()) ?? 0 : 0 }

    /// Returns the sentence about a lease that has ended.
    static func ending(of number: UInt64, because reason: String) -> String { "lease l\(number) has ended: \(reason)" }

    /// Returns the conflict of another client's request.
    func conflict(on target: LeaseTarget, at time: LeaseTime) -> LeaseConflict {
        LeaseConflict(
            target: target,
            holder: holder.name,
            note: note,
            seconds: max(1, Int((end - time.elapsed) / .seconds(1))),
            end: LocalTime.text(of: time.date(of: end))
        )
    }

    /// Returns the lease as shown at an endpoint. A client that may not see every endpoint learns no phone from a link.
    func view(at endpoint: Endpoint, waiting: Int, for principal: Principal, at time: LeaseTime) -> Lease {
        Lease(
            id: id,
            endpoint: endpoint.id,
            device: principal.canSeeAllEndpoints ? device : endpoint.location.udid,
            holder: holder.name,
            isOwn: holder.key == principal.leaseHolder.key,
            note: note,
            seconds: Int(length / .seconds(1)),
            createdAt: time.date(of: start),
            expiresAt: time.date(of: end),
            waiting: waiting
        )
    }
}

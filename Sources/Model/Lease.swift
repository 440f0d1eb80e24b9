package import FoundationEssentials

/// Exclusive use of an endpoint, and of the phone that the endpoint runs on, until a time.
package struct Lease: Hashable, Sendable, Codable, Identifiable {
    /// The identifier `l1`, `l2`, …, which the broker uses once between its start and its end. The ID of a lease that
    /// another host granted ends with that host: `l1.lab2`.
    package let id: String
    /// The endpoint that the lease was requested for.
    package let endpoint: EndpointID
    /// The phone that the lease covers; nil for an endpoint without a phone that the client may know.
    package let device: UDID?
    /// The name of the holder: the name of a grant, or the user of a process.
    package let holder: SanitizedText
    /// True if the client of this response holds the lease.
    package let isOwn: Bool
    /// The holder's reason for the lease.
    package let note: SanitizedText?
    /// The length of the lease in seconds. A call of the holder extends the lease to this length again.
    package let seconds: Int
    package let createdAt: Date
    /// Nil for a lease of another host, if this broker knows only its claim.
    package let expiresAt: Date?
    /// The number of clients that wait for the lease. Nil for a lease of another host, as `expiresAt`.
    package let waiting: Int?

    private enum CodingKeys: String, CodingKey {
        case id, endpoint, device, holder, isOwn = "own", note, seconds, createdAt, expiresAt, waiting
    }

    package init(
        id: String,
        endpoint: EndpointID,
        device: UDID?,
        holder: SanitizedText,
        isOwn: Bool,
        note: SanitizedText?,
        seconds: Int,
        createdAt: Date,
        expiresAt: Date?,
        waiting: Int?
    ) {
        self.id = id
        self.endpoint = endpoint
        self.device = device
        self.holder = holder
        self.isOwn = isOwn
        self.note = note
        self.seconds = seconds
        self.createdAt = createdAt
        self.expiresAt = expiresAt
        self.waiting = waiting
    }
}

extension Lease {
    /// Returns whether a text is an ID of a lease on its own host: `l` and at most 20 digits, as a 64-bit number has.
    package static func isLocalID(_ text: String) -> Bool {
        text.first == "l" && (2...21).contains(text.utf8.count)
            && text.utf8.dropFirst().allSatisfy(\.isDigit)
    }

    /// Splits an ID of a lease: `l3.lab2` into `l3` and `lab2`. The host is nil for a lease of this broker.
    package static func parts(ofID id: String) -> (id: String, host: HostName?) {
        guard let dot = id.firstIndex(of: "."), let host = HostName(id[id.index(after: dot)...]) else {
            return (id, nil)
        }
        return (String(id[..<dot]), host)
    }

    /// The greatest number of waiting clients that is shown for a lease of another host.
    private static let remoteWaitingLimit = 1_000

    /// Returns the lease as the other brokers of the team show it. The ID of the endpoint and the ID of the lease end with
    /// the host. An ID that no broker gives is left out, and numbers outside their ranges are clamped.
    package func on(_ host: HostName) -> Lease {
        Lease(
            id: "\(Self.isLocalID(id) ? id : "l").\(host)",
            endpoint: endpoint.on(host),
            device: device,
            holder: holder,
            isOwn: isOwn,
            note: note,
            seconds: min(max(seconds, 1), LeaseSpec.maxSeconds),
            createdAt: createdAt,
            expiresAt: expiresAt,
            waiting: waiting.map { min(max($0, 0), Self.remoteWaitingLimit) }
        )
    }
}

extension Lease: ListItem { package static let listName = "leases" }

/// The request for a lease: the body of `POST /v1/leases`.
package struct LeaseSpec: Hashable, Sendable, Codable {
    /// The length of a lease without a length, in seconds.
    package static let standardSeconds = 600
    /// The maximum length of a lease in seconds (8 hours).
    package static let maxSeconds = 28_800
    /// The maximum time in seconds to wait for a lease (1 hour).
    package static let maxWaitSeconds = 3_600

    package let endpoint: EndpointID
    /// The length in seconds; nil for `standardSeconds`.
    package let seconds: Int?
    /// The time in seconds to wait while another client has the lease; nil for 0.
    package let waitSeconds: Int?
    /// The reason, which other clients see.
    package let note: SanitizedText?
    /// The ID of the client's lease to renew. A lease that has ended is not renewed. Nil to take a lease if the client
    /// has none.
    package let renew: String?

    package init(
        endpoint: EndpointID,
        seconds: Int? = nil,
        waitSeconds: Int? = nil,
        note: SanitizedText? = nil,
        renew: String? = nil
    ) {
        self.endpoint = endpoint
        self.seconds = seconds
        self.waitSeconds = waitSeconds
        self.note = note
        self.renew = renew
    }
}

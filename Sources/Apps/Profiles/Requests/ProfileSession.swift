import Model

/// The session of one connection to an endpoint: looked for, acquired, kept alive and released.
struct ProfileSession: Sendable {
    private struct Current: Hashable {
        let id: String
        /// Indicates whether Patchbay has begun the session, so that Patchbay ends it.
        let isOwn: Bool
        var lastUse: Duration
        var lastHeartbeat: Duration
    }

    private let spec: ProfileSessionSpec
    private var current: Current?
    private var hasLookedForExisting = false

    init(_ spec: ProfileSessionSpec) { self.spec = spec }

    /// The session's ID for paths; nil if a header has it.
    var pathID: String? { spec.header == nil ? current?.id : nil }

    /// The header with the session's ID; nil if paths have it.
    var header: ProfileRequest.Header? {
        guard let name = spec.header, let current else { return nil }
        return ProfileRequest.Header(name: name, value: current.id)
    }

    // MARK: Before a call

    /// The request that leads to a session; nil if there is one.
    var nextTemplate: RequestTemplate? {
        guard current == nil else { return nil }
        if let existing = spec.existing, !hasLookedForExisting { return existing.template }
        return spec.acquire.template
    }

    /// Processes the response to `nextTemplate`. Returns a failure that ends the call.
    mutating func receive(_ response: AppResponse, at now: Duration) -> AuthenticationFailure? {
        if let existing = spec.existing, !hasLookedForExisting {
            hasLookedForExisting = true
            begin(Self.id(in: response, at: existing.pointer), isOwn: false, at: now)
            return nil
        }
        if response.status == spec.busyStatus { return .busy }
        guard response.isSuccess, let id = Self.id(in: response, at: spec.acquire.pointer) else {
            return .unexpected("status \(response.status) and no session")
        }
        begin(id, isOwn: true, at: now)
        return nil
    }

    private mutating func begin(_ id: String?, isOwn: Bool, at now: Duration) {
        current = id.map { Current(id: $0, isOwn: isOwn, lastUse: now, lastHeartbeat: now) }
    }

    /// Returns the ID of a session. The ID becomes a header or a part of a path.
    private static func id(in response: AppResponse, at pointer: JSONPointer) -> String? {
        guard let text = response.text(at: pointer), text.wholeMatch(of: #/[A-Za-z0-9._~-]{1,256}/#) != nil else {
            return nil
        }
        return text == "." || text == ".." ? nil : text
    }

    // MARK: After a call

    /// Judges the response to a call in the session.
    mutating func finish(_ response: AppResponse, at now: Duration) -> ProfileAuthentication.Verdict {
        if response.status == spec.busyStatus { return .failed(.busy) }
        if let loss = spec.loss, loss.includes(response) {
            forget()
            return .sendAgain
        }
        current?.lastUse = now
        current?.lastHeartbeat = now
        return .deliver
    }

    mutating func forget() {
        current = nil
        hasLookedForExisting = false
    }

    // MARK: Between calls

    /// The time of the next heartbeat or release; nil without a session of Patchbay's own.
    var nextMaintenance: Duration? {
        guard let current, current.isOwn else { return nil }
        let release = current.lastUse + spec.lifetime
        return spec.heartbeat == nil ? release : min(current.lastHeartbeat + spec.lifetime / 2, release)
    }

    /// Returns the heartbeat that is due at this time; nil if the session is to be released instead.
    mutating func heartbeat(at now: Duration) -> RequestTemplate? {
        guard let current, now < current.lastUse + spec.lifetime else { return nil }
        self.current?.lastHeartbeat = now
        return spec.heartbeat
    }

    /// The request that ends the session; nil if the session is another client's.
    var releaseTemplate: RequestTemplate? { current?.isOwn == true ? spec.release : nil }
}

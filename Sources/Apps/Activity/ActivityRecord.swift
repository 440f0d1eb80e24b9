import AccessControl
package import Model

/// An entry with what its readers do not get at once: its picture, and what decides who may see it.
package struct ActivityRecord: Sendable {
    /// The entry, without what is still in `texts`.
    package private(set) var entry: ActivityEntry
    private var texts: ActivityTexts
    /// `Endpoint.approvedApp` at the time of the entry.
    private let approvedApp: SanitizedText?
    /// The number of the last change.
    package private(set) var revision: UInt64
    /// The client or the endpoint that has a share of the history.
    let holder: ActivityHistory.Holder
    package var picture: ActivityPicture?

    init(
        entry: ActivityEntry,
        texts: ActivityTexts,
        holder: ActivityHistory.Holder,
        approvedApp: SanitizedText?,
        revision: UInt64
    ) {
        self.entry = entry
        self.texts = texts
        self.holder = holder
        self.approvedApp = approvedApp
        self.revision = revision
    }

    /// Records that the call has waited and now runs.
    mutating func start(after wait: Duration, revision: UInt64) {
        change(revision) { call in (call.outcome, call.waitMilliseconds) = (.running, wait.milliseconds) }
    }

    mutating func end(
        _ outcome: ActivityEntry.Outcome,
        _ result: ActivityTexts.Excerpt?,
        _ picture: ActivityPicture?,
        after milliseconds: Int,
        revision: UInt64
    ) {
        change(revision) { call in
            if call.outcome == .waiting {
                // It never ran.
                (call.waitMilliseconds, call.durationMilliseconds) = (milliseconds, 0)
            } else {
                call.durationMilliseconds = milliseconds
            }
            call.outcome = outcome
        }
        texts.result = result
        self.picture = picture
    }

    private mutating func change(_ revision: UInt64, _ change: (inout ActivityEntry.Call) -> Void) {
        entry.change(change)
        self.revision = revision
    }

    /// True if the entry lacks texts of its call.
    var isUnread: Bool { !texts.isEmpty }

    /// Adds the texts of the call to the entry, without their secrets.
    ///
    /// - Parameter secrets: The secrets of now. Those from the time of the call are removed too.
    mutating func read(_ secrets: [[UInt8]]) { entry.change { texts.move(to: &$0, without: secrets) } }

    /// Takes the entry of a copy that was read, unless the call has changed since.
    mutating func adopt(_ read: ActivityRecord) {
        guard revision == read.revision else { return }
        (entry, texts) = (read.entry, read.texts)
    }

    /// Returns whether a client may see the entry.
    func isVisible(to principal: Principal) -> Bool {
        if principal.isOwner { return true }
        guard let call = entry.call else {
            return principal.may(.registryRead) && principal.canSee(entry.endpoint, approvedApp: approvedApp)
        }
        return call.client.grant != nil && call.client.grant == principal.grant?.id
    }

    /// The entry with the facts of its picture.
    package var described: ActivityEntry {
        var described = entry
        if let picture { described.change { $0.picture = picture.facts } }
        return described
    }
}

extension ActivityEntry {
    fileprivate mutating func change(_ change: (inout Call) -> Void) {
        guard case .call(var call) = content else { return }
        change(&call)
        content = .call(call)
    }
}

extension ActivityEntry.Client {
    /// The client of a call. An agent of a user and the user's own commands have different names.
    init(_ principal: Principal, _ agent: SanitizedText?) {
        if let grant = principal.grant {
            self.init(name: grant.name, kind: .grant, grant: grant.id, agent: agent)
        } else {
            let kind: Kind = principal.member == nil ? .user : .host
            self.init(name: principal.leaseHolder.name, kind: kind, agent: agent)
        }
    }
}

extension ActivityEntry.Outcome {
    /// The outcome of a call that ended.
    init(_ result: Result<JSONObject, any Error>) {
        switch result {
        case .success(let result):
            guard result["isError"] == true else {
                self = .ok
                return
            }
            switch result["_meta"]?["patchbay/failure"]?.string ?? "" {
            case "timeout", "response-lost": self = .unknown
            case "access-ended": self = .cancelled
            case let code: self = Self.refusals.contains(code) ? .refused : .error
            }
        case .failure(is CancellationError), .failure(AppError.accessEnded): self = .cancelled
        case .failure(AppError.timedOut), .failure(AppError.responseLost): self = .unknown
        case .failure(let error as AppError): self = Self.refusals.contains(error.code) ? .refused : .error
        case .failure: self = .error
        }
    }

    /// The codes of calls that the broker did not send (`AppError.code`).
    private static let refusals: Set = [
        "not-approved", "changed", "token-required", "not-permitted", "invalid-arguments", "busy", "permission-changed",
        "leased", "lease-refused",
    ]
}

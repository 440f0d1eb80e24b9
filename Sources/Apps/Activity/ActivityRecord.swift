import AccessControl
package import Model

/// An entry with what its readers do not get at once: its picture, and what decides who may see it.
package struct ActivityRecord: Sendable {
    package private(set) var entry: ActivityEntry
    /// `Endpoint.approvedApp` at the time of the entry.
    private let approvedApp: SanitizedText?
    /// The number of the last change.
    package private(set) var revision: UInt64
    /// The client or the endpoint that has a share of the history.
    let holder: ActivityHistory.Holder
    package var picture: ActivityPicture?

    init(
        entry: ActivityEntry,
        holder: ActivityHistory.Holder,
        approvedApp: SanitizedText?,
        revision: UInt64
    ) {
        self.entry = entry
        self.holder = holder
        self.approvedApp = approvedApp
        self.revision = revision
    }

    /// Records that the call has waited and now runs.
    mutating func start(after wait: Duration, revision: UInt64) {
        guard var call = entry.call else { return }
        (call.outcome, call.waitMilliseconds) = (.running, wait.milliseconds)
        replace(call, revision: revision)
    }

    mutating func end(
        _ outcome: ActivityEntry.Outcome,
        _ result: ActivityEntry.Result?,
        _ picture: ActivityPicture?,
        after milliseconds: Int,
        revision: UInt64
    ) {
        guard var call = entry.call else { return }
        if call.outcome == .waiting {
            // It never ran.
            (call.waitMilliseconds, call.durationMilliseconds) = (milliseconds, 0)
        } else {
            call.durationMilliseconds = milliseconds
        }
        (call.outcome, call.result) = (outcome, result)
        replace(call, revision: revision)
        self.picture = picture
    }

    private mutating func replace(_ call: ActivityEntry.Call, revision: UInt64) {
        entry = entry.with(call)
        self.revision = revision
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
        guard let picture, var call = entry.call else { return entry }
        call.picture = picture.facts
        return entry.with(call)
    }
}

extension ActivityEntry {
    /// Returns the entry with another content.
    fileprivate func with(_ call: Call) -> ActivityEntry {
        ActivityEntry(id: id, at: at, endpoint: endpoint, app: app, content: .call(call))
    }
}

extension ActivityEntry.Client {
    /// The client of a call. An agent of a user and the user's own commands have different names.
    init(_ principal: Principal, _ agent: SanitizedText?) {
        let kind: Kind = principal.member != nil ? .host : principal.grant != nil ? .grant : .user
        self.init(name: principal.leaseHolder.name, kind: kind, grant: principal.grant?.id, agent: agent)
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

/// The texts of a result.
enum ActivityResult {
    /// Returns the beginning of the texts of a result, without secrets.
    static func text(
        of result: Result<JSONObject, any Error>,
        _ redactor: SecretRedactor
    ) -> ActivityEntry.Result? {
        switch result {
        case .success(let result): text(of: result, redactor)
        case .failure(is CancellationError): nil
        case .failure(let error):
            bounded((error as? RPCError)?.message ?? (error as? AppError)?.code ?? "\(type(of: error))", redactor)
        }
    }

    private static func bounded(_ text: String, _ redactor: SecretRedactor) -> ActivityEntry.Result {
        ActivityEntry.Result(text: redactor.text(text), bytes: text.utf8.count)
    }

    private static func text(of result: JSONObject, _ redactor: SecretRedactor) -> ActivityEntry.Result? {
        var (texts, size, count) = ([String](), 0, 0)
        for block in result["content"]?.array ?? [] {
            guard let text = block["text"]?.string ?? link(in: block) else { continue }
            count += 1
            size += text.utf8.count
            let left = SecretRedactor.limit - texts.reduce(0) { $0 + $1.utf8.count + 1 }
            if left > 0 { texts.append(redactor.text(text, limit: left)) }
        }
        if count == 0, let structured = result["structuredContent"]?.object {
            let kept = JSON.object(redactor.arguments(structured)).text
            return ActivityEntry.Result(text: kept, bytes: kept.utf8.count)
        }
        return count == 0 ? nil : ActivityEntry.Result(text: texts.joined(separator: "\n"), bytes: size)
    }

    private static func link(in block: JSON) -> String? {
        guard block["type"] == "resource_link", let uri = block["uri"]?.string else { return nil }
        return "[link to \(uri)]"
    }
}

import Model

/// Decides what becomes of a request after a try that failed: try again, wait for the app to come back, or give up.
///
/// The one rule that everything else follows: a request that may have reached the app is not sent again, unless the app says
/// that repeating it does no harm. A request that has not is kept until the app is there or the time is over.
struct RetryPolicy: Sendable {
    enum Move: Hashable, Sendable {
        case tryAgain
        /// Until something changes about the app, at most so long.
        case wait(atMost: Duration)
        case giveUp(AppError)
    }

    /// Between two tries while the app has a place and does not answer there. No event tells that a port is listened on
    /// again; somebody has to knock, and does so only while a call waits.
    static let pause = Duration.milliseconds(250)

    private let id: EndpointID
    private let limit: Duration
    private let mayRepeat: Bool
    private var hasRepeated = false

    /// The app is waited for until `limit`, and may get the request twice where `mayRepeat` says so.
    init(of id: EndpointID, for limit: Duration, mayRepeat: Bool) {
        self.id = id
        self.limit = limit
        self.mayRepeat = mayRepeat
    }

    /// What to do after a try that failed, `elapsed` after the request came.
    ///
    /// The app was started, or came back, `sinceArrival` ago; nil where nobody saw it.
    mutating func move(after trouble: Trouble, at elapsed: Duration, sinceArrival: Duration?) -> Move {
        switch trouble {
        case .unreachable(let failure):
            return wait(Self.isKnocking(failure) ? Self.pause : limit, at: elapsed, or: .away(id))
        case .wantsSecret(.missing):
            // One that has just been started gets its token from whoever started it; one that runs for long has none.
            let isNew = sinceArrival.map { $0 < limit } ?? false
            return isNew ? wait(limit, at: elapsed, or: .needsSecret(id)) : .giveUp(.needsSecret(id))
        case .wantsSecret(.rejected), .wantsSecret(.outdated):
            return wait(limit, at: elapsed, or: .needsSecret(id))
        case .lost:
            guard mayRepeat, !hasRepeated else { return .giveUp(.lostAfterDelivery(id)) }
            hasRepeated = true
            return .tryAgain
        case .mismatch(_, let found): return .giveUp(.mismatch(id, found: found))
        case .notApproved: return .giveUp(.notApproved(id))
        case .notPermitted(let scope): return .giveUp(.notPermitted(id, scope))
        case .silent(let seconds): return .giveUp(.tooSlow(id, seconds: seconds))
        case .mute(let seconds): return .giveUp(.mute(id, seconds: seconds))
        case .unclear(let what): return .giveUp(.unclear(id, what))
        case .noMCP: return .giveUp(.noTools(id))
        case .busy: return .giveUp(.busy(id))
        // What is allowed now is looked up by the next try.
        case .outdated: return .tryAgain
        }
    }

    private func wait(_ pause: Duration, at elapsed: Duration, or failure: AppError) -> Move {
        elapsed < limit ? .wait(atMost: min(pause, limit - elapsed)) : .giveUp(failure)
    }

    /// Whether the app has a place where it may listen again without anybody being told.
    private static func isKnocking(_ failure: DialError) -> Bool {
        switch failure.reason {
        case .noRoute, .deviceAbsent, .usbmuxdAbsent, .forbidden: false
        default: true
        }
    }
}

import Glibc

/// Keeps the first bytes of a client that was silent at first from its target until the guard has decided about them.
///
/// The bytes stay in the kernel meanwhile: an idle connection costs what stands here and no more.
package struct RelayInspector: Sendable {
    enum Verdict {
        case passes
        case refused(BrowserGuard.Refusal)
        case undecided
    }

    private var guarding: BrowserGuard
    private let limits: InspectionTimeouts
    private var seen = 0
    private var stage = RequestStage.silent
    private var began: ContinuousClock.Instant?
    private var lastCame: ContinuousClock.Instant?

    package init(_ guarding: BrowserGuard, limits: InspectionTimeouts = InspectionTimeouts()) {
        self.guarding = guarding
        self.limits = limits
    }

    var farewell: Duration { limits.farewell }

    /// Whether time alone may bring the decision.
    var isTimed: Bool { began != nil }

    /// Looks at what waits at the client's end, and takes nothing of it.
    mutating func look(at client: borrowing RelaySocket, space: RelayBufferPool, now: ContinuousClock.Instant)
        -> Verdict
    {
        let room = UnsafeMutableRawBufferPointer(rebasing: space.scratch[..<BrowserGuard.limit])
        let count = client.peek(into: room)
        // The end, or an error, which the next read tells: either way nothing is left to be looked at.
        guard count > 0 else { return count < 0 && errno == EAGAIN ? .undecided : .passes }
        switch guarding.verdict(on: UnsafeRawBufferPointer(rebasing: room[..<count]), isAll: client.isEnding) {
        case .passes: return .passes
        case .refused(let refusal): return .refused(refusal)
        case .undecided(let stage): self.stage = stage
        }
        if count > seen { lastCame = now }
        seen = count
        let began = began ?? now
        self.began = began
        if stage == .begun { return now - began < limits.head ? .undecided : .refused(.unfinished) }
        return now - (lastCame ?? now) < limits.patience(at: stage) ? .undecided : .passes
    }

    /// Whether the target's first bytes are not HTTP's, so that no request is to be expected.
    static func isOther(_ bytes: UnsafeRawBufferPointer) -> Bool {
        !bytes.prefix(5).elementsEqual("HTTP/".utf8.prefix(bytes.count))
    }
}

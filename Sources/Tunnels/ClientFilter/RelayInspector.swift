import Glibc
import SystemIO

/// Holds back the first bytes of an initially silent client until the browser guard has decided.
///
/// The bytes stay in the kernel's receive queue. An idle connection therefore costs only this value.
package struct RelayInspector: Sendable {
    enum Decision: Hashable, Sendable {
        case passes
        case refused(BrowserGuard.Refusal)
        /// The bytes may become a request. They are inspected again when more arrive, and at this time. Nil before the
        /// first byte.
        case undecided(until: MonotonicInstant?)
    }

    private var browserGuard: BrowserGuard
    private let limits: InspectionTimeouts
    private var seen = 0
    private var began: MonotonicInstant?
    private var lastCame: MonotonicInstant?

    /// Creates an inspector for a connection that the guard has not decided on.
    package init(_ browserGuard: BrowserGuard, limits: InspectionTimeouts = InspectionTimeouts()) {
        self.browserGuard = browserGuard
        self.limits = limits
    }

    var drainTimeout: Duration { limits.drain }

    /// The time of the next decision without more bytes; nil before the first byte.
    private(set) var deadline: MonotonicInstant?

    /// Peeks at the client's receive queue.
    mutating func inspect(_ client: inout RelaySocket, pool: RelayBufferPool, now: MonotonicInstant) -> Decision {
        let buffer = UnsafeMutableRawBufferPointer(rebasing: pool.scratch[..<BrowserGuard.limit])
        let count = client.peek(into: buffer)
        // At EOF and after an error, no bytes are left to inspect. The next read reports which.
        guard count > 0 else { return count < 0 && errno == EAGAIN ? .undecided(until: deadline) : .passes }
        let stage: RequestLineStage
        switch browserGuard.evaluate(UnsafeRawBufferPointer(rebasing: buffer[..<count]), isComplete: client.isEnding) {
        case .passes: return .passes
        case .refused(let refusal): return .refused(refusal)
        case .undecided(let current): stage = current
        }
        if count > seen { lastCame = now }
        seen = count
        let began = began ?? now
        self.began = began
        let end = stage == .begun ? began + limits.head : (lastCame ?? now) + limits.timeout(at: stage)
        deadline = end
        if now < end { return .undecided(until: end) }
        return stage == .begun ? .refused(.unfinished) : .passes
    }

    /// True if the target's first bytes are not HTTP. The target then expects no HTTP request.
    static func isNotHTTP(_ bytes: UnsafeRawBufferPointer) -> Bool {
        !bytes.prefix(5).elementsEqual("HTTP/".utf8.prefix(bytes.count))
    }
}

extension BrowserGuard.Refusal {
    /// The HTTP 403 response for a rejected client, with the reason and a hint.
    ///
    /// The sender reads on until the client closes. Closing with unread bytes would send RST, which can discard the
    /// response (RFC 9112, section 9.6).
    var response: [UInt8] {
        let text = "Patchbay: \(self).\n"
        let lines = [
            "HTTP/1.1 403 Forbidden", "Content-Type: text/plain; charset=utf-8", "Content-Length: \(text.utf8.count)",
            "Connection: close", "Cache-Control: no-store", "X-Content-Type-Options: nosniff", "", text,
        ]
        return Array(lines.joined(separator: "\r\n").utf8)
    }
}

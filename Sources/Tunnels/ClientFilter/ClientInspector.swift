import Glibc
import SystemIO

/// Peeks at the first bytes of a client before the target is dialed.
struct ClientInspector: Sendable {
    enum Result: Sendable {
        case passes
        /// The client sent no bytes yet: the server may speak first. The relay continues the inspection.
        case silent
        case refused(BrowserGuard.Refusal)
    }

    let limits: InspectionTimeouts
    let clock: any Clock<Duration>

    /// Peeks at the first bytes and waits for more while the decision is open.
    ///
    /// - Throws: `CancellationError`; `SocketError` if the kernel watches no more descriptors.
    func inspect(_ client: CInt, with browserGuard: BrowserGuard) async throws -> Result {
        // Most clients have sent bytes by now or send them at once, and are not delayed.
        var reading = browserGuard
        var peeked = Self.peek(at: client, with: &reading)
        if case .undecided(.silent, 0) = peeked {
            guard try await isReadable(client, within: limits.firstByte) else { return .silent }
            peeked = Self.peek(at: client, with: &reading)
        }
        if case .undecided(.possible, _) = peeked { return .passes }
        if case .decided(let result) = peeked { return result }
        return try await withTimeout(limits.head, clock: clock) {
            try await waitForRequest(client, browserGuard)
        } ?? .refused(.unfinished)
    }

    private enum PeekResult {
        case decided(Result)
        case undecided(RequestLineStage, count: Int)
    }

    private static func peek(
        at client: CInt,
        with browserGuard: inout BrowserGuard,
        isComplete: Bool = false
    ) -> PeekResult {
        withUnsafeTemporaryAllocation(byteCount: BrowserGuard.limit, alignment: 16) { space in
            let count = recv(client, space.baseAddress, space.count, CInt(MSG_PEEK) | CInt(MSG_DONTWAIT))
            if count < 0, errno == EAGAIN || errno == EINTR { return .undecided(.silent, count: 0) }
            // EOF or an error: there are no bytes to inspect.
            guard count > 0 else { return .decided(.passes) }
            switch browserGuard.evaluate(UnsafeRawBufferPointer(rebasing: space[..<count]), isComplete: isComplete) {
            case .passes: return .decided(.passes)
            case .refused(let refusal): return .decided(.refused(refusal))
            case .undecided(let stage): return .undecided(stage, count: count)
            }
        }
    }

    /// Waits for more bytes until the guard has decided or a timeout expires.
    private func waitForRequest(_ client: CInt, _ browserGuard: BrowserGuard) async throws -> Result {
        var browserGuard = browserGuard
        var seen = 0
        var isComplete = false
        defer { if seen > 0 { SocketOption.setLowWater(1, client) } }
        while true {
            switch Self.peek(at: client, with: &browserGuard, isComplete: isComplete) {
            case .decided(let result): return result
            case .undecided(let stage, let count):
                if count != seen {
                    // Bytes that were peeked stay in the queue. Only additional bytes make the socket readable.
                    SocketOption.setLowWater(count + 1, client)
                    seen = count
                }
                guard try await isReadable(client, within: limits.timeout(at: stage)) else {
                    return stage == .silent ? .silent : .passes
                }
                // Readable without additional bytes means EOF.
                isComplete = seen > 0 && Self.available(at: client) <= seen
            }
        }
    }

    private func isReadable(_ client: CInt, within limit: Duration) async throws -> Bool {
        try await withTimeout(limit, clock: clock) {
            try await Poller.shared.wait(for: .readable, of: client)
            return true
        } ?? false
    }

    /// The number of bytes in the receive queue (FIONREAD; tcp(7)).
    private static func available(at client: CInt) -> Int {
        var count: CInt = 0
        return ioctl(client, UInt(FIONREAD), &count) == 0 ? Int(count) : 0
    }
}

/// Holds back the first bytes of an initially silent client until the browser guard has decided.
///
/// The bytes stay in the kernel's receive queue. An idle connection therefore costs only this value.
package struct RelayInspector: Sendable {
    enum Decision {
        case passes
        case refused(BrowserGuard.Refusal)
        case undecided
    }

    private var browserGuard: BrowserGuard
    private let limits: InspectionTimeouts
    private var seen = 0
    private var stage = RequestLineStage.silent
    private var began: ContinuousClock.Instant?
    private var lastCame: ContinuousClock.Instant?

    /// Creates an inspector for a connection that the guard has not decided on.
    package init(_ browserGuard: BrowserGuard, limits: InspectionTimeouts = InspectionTimeouts()) {
        self.browserGuard = browserGuard
        self.limits = limits
    }

    var drainTimeout: Duration { limits.drain }

    /// True if the decision may depend on a timeout.
    var needsTimer: Bool { began != nil }

    /// Peeks at the client's receive queue.
    mutating func inspect(_ client: borrowing RelaySocket, pool: RelayBufferPool, now: ContinuousClock.Instant)
        -> Decision
    {
        let buffer = UnsafeMutableRawBufferPointer(rebasing: pool.scratch[..<BrowserGuard.limit])
        let count = client.peek(into: buffer)
        // At EOF and after an error, no bytes are left to inspect. The next read reports which.
        guard count > 0 else { return count < 0 && errno == EAGAIN ? .undecided : .passes }
        switch browserGuard.evaluate(UnsafeRawBufferPointer(rebasing: buffer[..<count]), isComplete: client.isEnding) {
        case .passes: return .passes
        case .refused(let refusal): return .refused(refusal)
        case .undecided(let stage): self.stage = stage
        }
        if count > seen { lastCame = now }
        seen = count
        let began = began ?? now
        self.began = began
        if stage == .begun { return now - began < limits.head ? .undecided : .refused(.unfinished) }
        return now - (lastCame ?? now) < limits.timeout(at: stage) ? .undecided : .passes
    }

    /// True if the target's first bytes are not HTTP. The target then expects no HTTP request.
    static func isNotHTTP(_ bytes: UnsafeRawBufferPointer) -> Bool {
        !bytes.prefix(5).elementsEqual("HTTP/".utf8.prefix(bytes.count))
    }
}

/// The HTTP 403 response for a rejected client, followed by a lingering close.
enum ForbiddenResponse {
    /// Returns the bytes of the response, with the reason and a hint.
    static func response(to refusal: BrowserGuard.Refusal) -> [UInt8] {
        let text = "Patchbay: \(refusal).\n"
        let lines = [
            "HTTP/1.1 403 Forbidden", "Content-Type: text/plain; charset=utf-8", "Content-Length: \(text.utf8.count)",
            "Connection: close", "Cache-Control: no-store", "X-Content-Type-Options: nosniff", "", text,
        ]
        return Array(lines.joined(separator: "\r\n").utf8)
    }

    /// Sends the response, then reads until the client closes or the limit expires.
    ///
    /// Closing with unread bytes would send RST, which can discard the response (RFC 9112, section 9.6).
    static func send(
        _ refusal: BrowserGuard.Refusal,
        to client: CInt,
        limit: Duration,
        clock: any Clock<Duration>
    ) async {
        let response = response(to: refusal)
        // The send buffer of a new connection has room for the response.
        _ = response.withUnsafeBytes { Glibc.send(client, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL)) }
        shutdown(client, CInt(SHUT_WR))
        _ = try? await withTimeout(limit, clock: clock) {
            while true {
                // The kernel discards the bytes of a TCP socket (MSG_TRUNC; tcp(7)).
                let count = recv(client, nil, 1 << 20, CInt(MSG_TRUNC))
                if count > 0 {
                    try Task.checkCancellation()
                } else if count < 0, errno == EAGAIN {
                    try await Poller.shared.wait(for: .readable, of: client)
                } else {
                    return
                }
            }
        }
    }
}

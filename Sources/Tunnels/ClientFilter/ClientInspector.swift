import Glibc
import SystemIO

/// Looks at the first bytes of a client before its target is dialled, without taking them.
struct ClientInspector: Sendable {
    enum Ending: Sendable {
        case passes
        /// Nothing came yet: the target may be one that speaks first. The relay looks on.
        case silent
        case refused(BrowserGuard.Refusal)
    }

    let limits: InspectionTimeouts
    let clock: any Clock<Duration>

    /// - Throws: `CancellationError`; `SocketError` when the kernel watches no more descriptors.
    func look(at client: CInt, with guarding: BrowserGuard) async throws -> Ending {
        // Most clients have sent by now, or do so at once, and are not held up.
        var reading = guarding
        var glance = Self.glance(at: client, with: &reading)
        if case .undecided(.silent, 0) = glance {
            guard try await isReadable(client, within: limits.silence) else { return .silent }
            glance = Self.glance(at: client, with: &reading)
        }
        if case .undecided(.possible, _) = glance { return .passes }
        if case .decided(let ending) = glance { return ending }
        return try await withDeadline(limits.head, clock: clock) {
            try await follow(client, guarding)
        } ?? .refused(.unfinished)
    }

    private enum Glance {
        case decided(Ending)
        case undecided(RequestStage, count: Int)
    }

    private static func glance(at client: CInt, with guarding: inout BrowserGuard, isAll: Bool = false) -> Glance {
        withUnsafeTemporaryAllocation(byteCount: BrowserGuard.limit, alignment: 16) { space in
            let count = recv(client, space.baseAddress, space.count, CInt(MSG_PEEK) | CInt(MSG_DONTWAIT))
            if count < 0, errno == EAGAIN || errno == EINTR { return .undecided(.silent, count: 0) }
            // At its end, or broken: there is nothing to be looked at.
            guard count > 0 else { return .decided(.passes) }
            switch guarding.verdict(on: UnsafeRawBufferPointer(rebasing: space[..<count]), isAll: isAll) {
            case .passes: return .decided(.passes)
            case .refused(let refusal): return .decided(.refused(refusal))
            case .undecided(let stage): return .undecided(stage, count: count)
            }
        }
    }

    private func follow(_ client: CInt, _ guarding: BrowserGuard) async throws -> Ending {
        var guarding = guarding
        var seen = 0
        var isAll = false
        defer { if seen > 0 { SocketOption.setLowWater(1, client) } }
        while true {
            switch Self.glance(at: client, with: &guarding, isAll: isAll) {
            case .decided(let ending): return ending
            case .undecided(let stage, let count):
                if count != seen {
                    // What was seen stays in the queue; only more than that is news.
                    SocketOption.setLowWater(count + 1, client)
                    seen = count
                }
                guard try await isReadable(client, within: limits.patience(at: stage)) else {
                    return stage == .silent ? .silent : .passes
                }
                // Readable without more bytes than before: no more will come.
                isAll = seen > 0 && Self.waiting(at: client) <= seen
            }
        }
    }

    private func isReadable(_ client: CInt, within limit: Duration) async throws -> Bool {
        try await withDeadline(limit, clock: clock) {
            try await Poller.shared.wait(for: .readable, of: client)
            return true
        } ?? false
    }

    /// How many bytes wait (FIONREAD; tcp(7)).
    private static func waiting(at client: CInt) -> Int {
        var count: CInt = 0
        return ioctl(client, UInt(FIONREAD), &count) == 0 ? Int(count) : 0
    }
}

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

/// What a client hears whose request is not let through: a whole HTTP answer, then the end.
enum ForbiddenResponse {
    static func response(to refusal: BrowserGuard.Refusal) -> [UInt8] {
        let text = "Patchbay: \(refusal).\n"
        let lines = [
            "HTTP/1.1 403 Forbidden", "Content-Type: text/plain; charset=utf-8", "Content-Length: \(text.utf8.count)",
            "Connection: close", "Cache-Control: no-store", "X-Content-Type-Options: nosniff", "", text,
        ]
        return Array(lines.joined(separator: "\r\n").utf8)
    }

    /// Says it, and reads on until the client closes or the time is over: a close with unread bytes would be a reset, which
    /// may take the answer away from the client (RFC 9112, section 9.6).
    static func say(_ refusal: BrowserGuard.Refusal, to client: CInt, limit: Duration, clock: any Clock<Duration>) async
    {
        let response = response(to: refusal)
        // A fresh connection has room for it.
        _ = response.withUnsafeBytes { send(client, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL)) }
        shutdown(client, CInt(SHUT_WR))
        _ = try? await withDeadline(limit, clock: clock) {
            while true {
                // Of TCP, thrown away in the kernel (MSG_TRUNC; tcp(7)).
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

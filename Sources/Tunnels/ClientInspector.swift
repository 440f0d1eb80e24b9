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

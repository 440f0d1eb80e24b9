import JSON
import Model
import AccessControl
import SystemIO

/// A session that is one caller's alone: the app may ask in it, on the stream of a request or on one beside it.
extension UpstreamSession {
    /// How long a request waits for the stream beside it; a server that keeps us waiting has none.
    private static let openingLimit = Duration.seconds(1)
    /// After the stream has ended while requests run.
    private static let pause = Duration.milliseconds(500)

    /// Sees to it that the stream is read on which the app may ask beside the requests (`roots/list` of the Python SDK). Before
    /// it is there such a question would go nowhere, and the request wait for ever.
    func attend(_ known: ServerInfo, _ passages: [AuthorizedRoute]) async {
        guard own != nil, let session = known.sessionID, attendance?.session != session else { return }
        attendance?.end.settle(.success(()))
        let (opened, end) = (Promise<Void>(), Promise<Void>())
        attendance = (session, end)
        send(.attend(self, known, passages, opened: opened, until: end))
        _ = try? await withDeadline(Self.openingLimit, clock: clock) { try await opened.value() }
    }

    /// Reads that stream until it ends, or another one is in its place.
    func readStream(
        of known: ServerInfo,
        _ passages: [AuthorizedRoute],
        opened: Promise<Void>,
        until end: Promise<Void>
    ) async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { try? await end.value() }
            group.addTask { await self.read(known, passages, opened) }
            await group.next()
            group.cancelAll()
        }
        opened.settle(.success(()))
        if attendance?.end === end { attendance = nil }
    }

    private func read(_ known: ServerInfo, _ passages: [AuthorizedRoute], _ opened: Promise<Void>) async {
        repeat {
            let answer = try? await exchange(
                nil,
                at: known.place,
                known.headers(for: "", [:]),
                passages,
                awaiting: nil,
                limits: listening,
                mayKeep: false,
                opened: { opened.settle(.success(())) }
            )
            // MCP 2025-03-26 and later: a server may have no such stream.
            guard let answer, answer.status != 405, !inquirers.isEmpty, introduction?.met == known else { return }
            try? await clock.sleep(for: Self.pause)
        } while !Task.isCancelled
    }

    /// Gives the session up, and lets the app know.
    func retire(by passages: [AuthorizedRoute]) async {
        attendance?.end.settle(.success(()))
        guard let known = introduction?.met, known.sessionID != nil else { return }
        part()
        _ = try? await exchange(
            nil,
            at: known.place,
            known.headers(for: "", [:]),
            passages,
            awaiting: nil,
            limits: .introduction,
            mayKeep: false,
            isFarewell: true
        )
    }

    /// What the app's server is that everybody meets, if it may have sessions that are one caller's alone.
    func mayHaveSessions(_ known: ServerInfo, speaking isStateless: Bool) -> Bool {
        if known.revision.isStateless {
            return isStateless && (withoutSessions == nil || withoutSessions != introduction?.of)
        }
        return known.sessionID != nil
    }

    /// This launch of the app gives no sessions.
    func noteNoSessions() { withoutSessions = introduction?.of }
}

import Model
import AccessControl
import SystemIO
import Synchronization

/// Following what apps tell of their changes, while somebody wants to hear it.
extension AppProxy {
    /// After a stream has ended for which nobody says why.
    private static let listeningPause = Duration.seconds(5)

    func listen(to id: EndpointID, for caller: AgentCaller) async {
        guard let endpoint = try? await endpoint(id) else { return }
        _ = line(to: endpoint)
        let isFirst = entries.withLock { entries in
            guard entries[id]?.isFollowed == false else { return false }
            entries[id]?.isFollowed = true
            return true
        }
        guard isFirst else { return }
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await self.news.quiet(id) }
            group.addTask { await self.keepListening(to: id, for: caller) }
            await group.next()
            group.cancelAll()
        }
        entries.withLock { $0[id]?.isFollowed = false }
        // One may have come between the last one's going and now.
        if news.isHeard(alone: id), !Task.isCancelled { send(.listen(id, for: caller)) }
    }

    private func keepListening(to id: EndpointID, for caller: AgentCaller) async {
        while !Task.isCancelled {
            // A new one each time: a stream whose reader is cancelled is over.
            let bell = bells.stream(of: id, keeping: 1) { _, _ in () }
            let isTelling = try? await listenOnce(to: id, for: caller)
            let pause: Duration? = isTelling == true ? Self.listeningPause : nil
            // One that tells nothing, or is away, is looked at again when something changes about it.
            guard let pause else {
                for await _ in bell { break }
                continue
            }
            _ = try? await withDeadline(pause, clock: clock) {
                for await _ in bell { break }
                return true
            }
        }
    }

    private func listenOnce(to id: EndpointID, for caller: AgentCaller) async throws -> Bool {
        let endpoint = try await endpoint(id)
        let (line, clearance) = try await admit(caller, to: endpoint)
        return try await line.listen(to: endpoint, by: clearance.passages)
    }
}

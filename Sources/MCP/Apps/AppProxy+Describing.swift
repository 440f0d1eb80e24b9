import JSON
import Model
import AccessControl
import SystemIO
import Synchronization

/// What an app says about itself, and what changes about it.
extension AppProxy {
    /// How long an app is asked that was never heard, and how long it is left alone afterwards.
    private static let meetingLimit = Duration.seconds(2)
    private static let meetingPause = Duration.seconds(10)

    /// What the app said when it was met last. One that was never met is asked now, if it is here.
    func description(of id: EndpointID, for caller: AgentCaller) async -> ServerDescription {
        if await shelf.record(of: id).info == nil { await meet(id, for: caller) }
        let record = await shelf.record(of: id)
        guard let info = record.info else {
            return ServerDescription(
                info: ["name": .string(id.text), "version": "0"],
                capabilities: ["tools": ["listChanged": true]]
            )
        }
        var capabilities = record.capabilities
        if var tools = capabilities["tools"]?.object {
            // Whatever the app tells: its next launch may have others, and the broker looks.
            tools["listChanged"] = true
            capabilities["tools"] = .object(tools)
        }
        return ServerDescription(
            info: info,
            capabilities: capabilities,
            instructions: record.instructions
        )
    }

    private func meet(_ id: EndpointID, for caller: AgentCaller) async {
        guard let endpoint = try? await endpoint(id), let (line, clearance) = try? await admit(caller, to: endpoint)
        else {
            return
        }
        let isDue = entries.withLock { entries in
            let now = watch.elapsed
            if let last = entries[id]?.lastMeeting, now - last < Self.meetingPause { return false }
            entries[id]?.lastMeeting = now
            return true
        }
        guard isDue else { return }
        _ = try? await withDeadline(Self.meetingLimit, clock: clock) {
            try await line.meet(endpoint, by: clearance.passages)
        }
    }

    /// What changes about an app from now on.
    func changes(of id: EndpointID, for caller: AgentCaller) -> AsyncStream<ServerChange> {
        let changes = news.stream(of: id, keeping: 64) { _, change in change }
        // What is known of it may be from an earlier launch; whoever listens is told when that turns out.
        send(.list(id, for: caller))
        send(.listen(id, for: caller))
        return changes
    }

    /// The same for all apps that a caller sees: which one it was does not matter there.
    func changes(for caller: AgentCaller) -> AsyncStream<ServerChange> {
        news.stream(of: nil, keeping: 1) { [self] id, change in
            guard change == .tools else { return nil }
            let app = entries.withLock { $0[id]?.approvedApp }
            return caller.permissions?.selector.includes(id, approvedApp: app) ?? true ? .tools : nil
        }
    }
}

import Client
import JSON

/// What one client has open: its session, and the requests that are not answered yet.
actor BridgeState {
    private struct Open {
        let isStateless: Bool
        let isSubscription: Bool
        let stop: AsyncStream<Never>.Continuation
    }

    private(set) var session = MCPSessionInfo()
    private var open: [JSON: Open] = [:]

    func began(_ id: String?) { session.id = id }

    func initialized(_ answer: JSON) { session.read(answer) }

    /// Notes a request; the stream ends when its client wants no answer any more.
    func open(_ message: ClientMessage, _ id: JSON) -> AsyncStream<Never> {
        let (stopped, stop) = AsyncStream.makeStream(of: Never.self)
        open[id] = Open(
            isStateless: message.revision != nil,
            isSubscription: message.isSubscription,
            stop: stop
        )
        return stopped
    }

    func close(_ id: JSON) { open[id] = nil }

    /// Whether the request is one of 2026-07-28, which is cancelled by closing its stream and in no other way.
    func isStateless(_ id: JSON) -> Bool { open[id]?.isStateless == true }

    func cancel(_ id: JSON) { open[id]?.stop.finish() }

    /// The client has nothing more to say: what lasts until it does ends.
    func endSubscriptions() { for request in open.values where request.isSubscription { request.stop.finish() } }
}

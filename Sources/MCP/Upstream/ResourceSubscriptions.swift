import JSON
import Synchronization
import SystemIO

/// The resources of an app that clients subscribe to. They outlive the app's launches.
final class ResourceSubscriptions: Sendable {
    /// The limit of subscribed resources per app.
    static let limit = 256

    private struct State {
        var uris: Set<String> = []
        /// Completed when the change stream must be opened again.
        var change: Promise<Void>?
    }

    private let state = Mutex(State())

    var uris: [String] { state.withLock { $0.uris.sorted() } }

    /// Handles `resources/subscribe` and `resources/unsubscribe` locally for a stateless app. In stateless mode the
    /// URIs are parameters of the change stream.
    ///
    /// - Returns: Nil if the app must receive the request.
    func response(to request: MCPRequest, of server: ServerInfo) -> UpstreamResponse? {
        guard server.protocolVersion.isStateless, let isNew = update(request) else { return nil }
        if isNew { state.withLock { $0.change }?.complete(.success(())) }
        return UpstreamResponse(outcome: .success([:]))
    }

    /// Records a request that the app has answered, to restore the subscription after the app's next launch.
    func record(_ request: MCPRequest) { _ = update(request) }

    /// Returns a promise that is completed by the next new subscription at a stateless app.
    func nextChange() -> Promise<Void> {
        let change = Promise<Void>()
        state.withLock { $0.change = change }
        return change
    }

    /// Adds or removes the resource of a request.
    ///
    /// - Returns: Whether the resource is a new one; nil if the request subscribes to nothing, or the limit is reached.
    private func update(_ request: MCPRequest) -> Bool? {
        guard let uri = request.params["uri"]?.string else { return nil }
        return state.withLock { state in
            switch request.method {
            case "resources/subscribe" where state.uris.count < Self.limit: return state.uris.insert(uri).inserted
            case "resources/unsubscribe":
                state.uris.remove(uri)
                return false
            default: return nil
            }
        }
    }
}

import Synchronization
import SystemIO

/// The resources of an app that clients subscribe to. They outlive the app's launches.
///
/// Each holder has a share of its own. At a limit the oldest subscription of the holder with the most ones is dropped, so
/// no holder displaces another one's.
final class ResourceSubscriptions: Sendable {
    /// The limits of subscribed resources per app: for each holder, and in total.
    static let holderLimit = 256
    static let limit = 512

    private struct State {
        /// The URIs of each holder, the oldest first.
        var uris: [String: [String]] = [:]
        /// Completed when the change stream of a stateless app must be opened again.
        var change: Promise<Void>?
    }

    private let state = Mutex(State())

    var uris: [String] { state.withLock { Set($0.uris.values.joined()).sorted() } }

    /// Returns a promise that is completed by the next new subscription.
    func nextChange() -> Promise<Void> {
        let change = Promise<Void>()
        state.withLock { $0.change = change }
        return change
    }

    /// Adds a resource for a holder. A known one becomes the newest.
    func add(_ uri: String, for holder: String) {
        let change = state.withLock { state -> Promise<Void>? in
            let isNew = !state.uris.values.contains { $0.contains(uri) }
            state.uris[holder, default: []].removeAll { $0 == uri }
            state.uris[holder, default: []].append(uri)
            if state.uris[holder, default: []].count > Self.holderLimit { state.uris[holder]?.removeFirst() }
            if state.uris.values.reduce(0, { $0 + $1.count }) > Self.limit,
                let busiest = state.uris.max(by: { $0.value.count < $1.value.count })
            {
                state.uris[busiest.key]?.removeFirst()
            }
            return isNew ? state.change : nil
        }
        change?.complete(.success(()))
    }

    /// Removes a resource of a holder.
    func remove(_ uri: String, for holder: String) {
        state.withLock { state in
            state.uris[holder]?.removeAll { $0 == uri }
            if state.uris[holder]?.isEmpty == true { state.uris[holder] = nil }
        }
    }
}

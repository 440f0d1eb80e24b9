import Model
import Synchronization

/// The plain text of every stored endpoint secret, so that other texts can be searched for them.
package final class KnownSecrets: Sendable {
    /// The minimum length of a secret to search for, in bytes. A shorter one may occur in any text by chance.
    private static let shortest = 8

    private let store: AccessStore
    private let cache = Mutex<(generation: UInt64, secrets: [[UInt8]])?>(nil)

    package init(_ store: AccessStore) { self.store = store }

    /// The secrets. They are opened again after a change only.
    package var all: [[UInt8]] {
        let generation = store.live.generation
        if let known = cache.withLock({ $0 }), known.generation == generation { return known.secrets }
        let records = store.live.content.withLock { Array($0.state.secrets.values) }
        let secrets = records.compactMap { try? store.keys.open($0) }.map { Array($0.reveal().utf8) }
            .filter { $0.count >= Self.shortest }
        cache.withLock { $0 = (generation, secrets) }
        return secrets
    }
}

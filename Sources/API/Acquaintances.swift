import NIOCore
import Synchronization

/// Who is at the other end of each connection, as far as the connection itself says: asked of the kernel once, and not with
/// every request on it. It does not change, however often the token does that is shown.
final class Acquaintances: Sendable {
    private let known = Mutex<[ObjectIdentifier: Visitor]>([:])

    func visitor(on channel: any Channel, orElse ask: () async -> Visitor) async -> Visitor {
        let id = ObjectIdentifier(channel)
        if let visitor = known.withLock({ $0[id] }) { return visitor }
        let visitor = await ask()
        known.withLock { $0[id] = visitor }
        // Another connection may be where this one was as soon as it is gone.
        channel.closeFuture.whenComplete { [self] _ in known.withLock { $0[id] = nil } }
        return visitor
    }
}

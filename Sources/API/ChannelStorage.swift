import NIOCore
import Synchronization

/// What is known of each connection, for as long as it stands.
final class ChannelStorage<Value: Sendable>: Sendable {
    private let values = Mutex<[ObjectIdentifier: Value]>([:])

    subscript(channel: any Channel) -> Value? { values.withLock { $0[ObjectIdentifier(channel)] } }

    func set(_ value: Value, for channel: any Channel) {
        let id = ObjectIdentifier(channel)
        values.withLock { $0[id] = value }
        // Another connection may be where this one was as soon as it is gone.
        channel.closeFuture.whenComplete { [self] _ in values.withLock { $0[id] = nil } }
    }
}

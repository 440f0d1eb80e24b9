package import NIOCore
import Synchronization

/// Stores one value for each open channel.
package final class ChannelStorage<Value: Sendable>: Sendable {
    private let values = Mutex<[ObjectIdentifier: Value]>([:])

    package init() {}

    package subscript(channel: any Channel) -> Value? { values.withLock { $0[ObjectIdentifier(channel)] } }

    package func set(_ value: Value, for channel: any Channel) {
        let id = ObjectIdentifier(channel)
        let isFirst = values.withLock { $0.updateValue(value, forKey: id) == nil }
        guard isFirst else { return }
        // After the channel is gone, another channel may have the same identifier.
        channel.closeFuture.whenComplete { [self] _ in values.withLock { $0[id] = nil } }
    }
}

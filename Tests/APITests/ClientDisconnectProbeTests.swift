import NIOCore
import NIOEmbedded
import Synchronization
import Testing

@testable import API

@Suite struct ClientDisconnectProbeTests {
    private let handler = DisconnectHandler()
    private let channel = EmbeddedChannel()
    private let log = Log()

    init() throws { try channel.pipeline.syncOperations.addHandler(handler) }

    private final class Log: Sendable {
        private let list = Mutex<[Int]>([])

        var numbers: [Int] { list.withLock { $0 } }
        func append(_ number: Int) { list.withLock { $0.append(number) } }
    }

    @Test(arguments: [true, false]) func `a closed connection calls the callback exactly once`(isHalf: Bool) {
        handler.onDisconnect { [log] in log.append(1) }

        if isHalf { channel.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed) }
        channel.pipeline.fireChannelInactive()

        #expect(log.numbers == [1])
    }

    @Test func `only the callback of the current request is called`() {
        handler.onDisconnect { [log] in log.append(1) }
        handler.onDisconnect { [log] in log.append(2) }

        channel.pipeline.fireChannelInactive()

        #expect(log.numbers == [2])
    }

    @Test func `a callback that is set after the disconnect is called at once`() {
        channel.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed)

        handler.onDisconnect { [log] in log.append(1) }

        #expect(log.numbers == [1])
    }
}

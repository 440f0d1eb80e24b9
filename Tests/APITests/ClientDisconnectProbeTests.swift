import NIOCore
import NIOEmbedded
import Synchronization
import Testing

@testable import API

@Suite struct ClientDisconnectProbeTests {
    private let departures = DisconnectHandler()
    private let channel = EmbeddedChannel()
    private let told = Told()

    init() throws { try channel.pipeline.syncOperations.addHandler(departures) }

    private final class Told: Sendable {
        private let list = Mutex<[Int]>([])

        var numbers: [Int] { list.withLock { $0 } }
        func tell(_ number: Int) { list.withLock { $0.append(number) } }
    }

    @Test(arguments: [true, false]) func `who closes a connection is gone, and that is told once`(isHalf: Bool) {
        departures.next { [told] in told.tell(1) }

        if isHalf { channel.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed) }
        channel.pipeline.fireChannelInactive()

        #expect(told.numbers == [1])
    }

    @Test func `the request that runs is told, and none that is over`() {
        departures.next { [told] in told.tell(1) }
        departures.next { [told] in told.tell(2) }

        channel.pipeline.fireChannelInactive()

        #expect(told.numbers == [2])
    }

    @Test func `a request that comes when its caller has gone is told at once`() {
        channel.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed)

        departures.next { [told] in told.tell(1) }

        #expect(told.numbers == [1])
    }
}

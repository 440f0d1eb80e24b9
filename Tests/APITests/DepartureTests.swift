import NIOCore
import NIOEmbedded
import Testing

@testable import API

@Suite struct DepartureTests {
    @Test(arguments: [true, false]) func `who closes a connection is gone`(isHalfClosed: Bool) async throws {
        let channel = NIOAsyncTestingChannel()
        try await channel.testingEventLoop.executeInContext {
            try channel.pipeline.syncOperations.addHandler(Departures())
        }
        async let departure: Void = Departures.next(on: channel)

        if isHalfClosed {
            try await channel.testingEventLoop.executeInContext {
                channel.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
            }
        } else {
            try await channel.close().get()
        }

        await departure
    }

    @Test func `of the second request on a connection it is told, too, and of none that is over`() async throws {
        let channel = NIOAsyncTestingChannel()
        try await channel.testingEventLoop.executeInContext {
            try channel.pipeline.syncOperations.addHandler(Departures())
        }

        await withTaskGroup(of: Void.self) { group in
            group.addTask { await Departures.next(on: channel) }
            group.cancelAll()
        }
        async let departure: Void = Departures.next(on: channel)
        try await channel.testingEventLoop.executeInContext {
            channel.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
        }

        await departure
    }
}

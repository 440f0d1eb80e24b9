import NIOCore
import NIOEmbedded
import Testing

@testable import API

@Suite struct DepartureTests {
    /// A connection whose loop turns while the test runs.
    private func withConnection(_ body: @escaping @Sendable (NIOAsyncTestingChannel) async throws -> Void) async throws
    {
        let channel = NIOAsyncTestingChannel()
        try await channel.testingEventLoop.executeInContext {
            try channel.pipeline.syncOperations.addHandler(Departures())
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                while !Task.isCancelled {
                    await channel.testingEventLoop.run()
                    await Task.yield()
                }
            }
            try await body(channel)
            group.cancelAll()
        }
    }

    private func closeInput(_ channel: NIOAsyncTestingChannel) async throws {
        try await channel.testingEventLoop.executeInContext {
            channel.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
        }
    }

    @Test(.timeLimit(.minutes(1))) func `who closes its end of a connection is gone`() async throws {
        try await withConnection { channel in
            async let departure: Void = Departures.next(on: channel)
            try await closeInput(channel)
            await departure
        }
    }

    @Test(.timeLimit(.minutes(1))) func `whose connection is gone is gone`() async throws {
        try await withConnection { channel in
            async let departure: Void = Departures.next(on: channel)
            try await channel.testingEventLoop.executeInContext { channel.pipeline.fireChannelInactive() }
            await departure
        }
    }

    @Test(.timeLimit(.minutes(1)))
    func `of the second request on a connection it is told, too, and of none that is over`() async throws {
        try await withConnection { channel in
            await withTaskGroup(of: Void.self) { group in
                group.addTask { await Departures.next(on: channel) }
                group.cancelAll()
            }
            async let departure: Void = Departures.next(on: channel)
            try await closeInput(channel)
            await departure
        }
    }
}

import SystemIO
import TestSupport
import Testing

@testable import Apps

@Suite struct ClientSessionStreamTests {
    private let tasks = BackgroundTasks()

    /// Runs the background tasks during the body.
    private func run(_ body: @Sendable (ClientSessionStream) async throws -> Void) async throws {
        let stream = ClientSessionStream(clock: PollerClock(), tasks: tasks)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { await tasks.run() }
            try await body(stream)
            group.cancelAll()
        }
    }

    @Test func `a request waits until the stream is open, and a session has one stream`() async throws {
        let reads = Replay<String>()
        try await run { stream in
            for _ in 1...3 {
                await stream.open("a") { opened in
                    reads.say("a")
                    opened()
                    try? await Promise<Void>().value()
                    return false
                }
                #expect(reads.soFar == ["a"])
            }
        }
    }

    @Test func `the stream of a new session replaces the earlier one`() async throws {
        let events = Replay<String>()
        try await run { stream in
            for session in ["a", "b"] {
                await stream.open(session) { opened in
                    events.say("open \(session)")
                    opened()
                    try? await Promise<Void>().value()
                    events.say("end \(session)")
                    return false
                }
            }
            try await eventually("the first stream has ended") { events.soFar.contains("end a") }
            stream.close()
            try await eventually("the second stream has ended") { events.soFar.contains("end b") }
        }
    }

    @Test func `a stream that ended during a request is opened again`() async throws {
        let reads = Replay<Int>()
        try await run { stream in
            await stream.open("a") { opened in
                opened()
                reads.say(1)
                return reads.soFar.count < 2
            }
            try await eventually("the stream is read twice") { reads.soFar.count == 2 }
            // After its end, the stream can be opened again.
            try await eventually("the stream is read a third time") {
                await stream.open("a") { opened in
                    opened()
                    reads.say(1)
                    return false
                }
                return reads.soFar.count >= 3
            }
        }
    }
}

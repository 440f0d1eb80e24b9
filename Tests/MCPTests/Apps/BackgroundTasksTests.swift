import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import MCP

@Suite struct BackgroundTasksTests {
    @Test func `a full queue drops further tasks`() {
        let tasks = BackgroundTasks()

        let isQueued = (1...1_025).map { _ in tasks.schedule {} }

        #expect(isQueued == Array(repeating: true, count: 1_024) + [false])
    }

    @Test func `at most sixteen requests run at once, and other tasks do not wait for them`() async throws {
        let tasks = BackgroundTasks()
        let running = Atomic(0)
        let isReleased = Promise<Void>()
        let counts = Replay<Int>()
        for _ in 1...100 {
            tasks.scheduleRequest {
                counts.say(running.add(1, ordering: .sequentiallyConsistent).newValue)
                while !isReleased.isCompleted { try await Task.sleep(for: .milliseconds(1)) }
                running.subtract(1, ordering: .sequentiallyConsistent)
            }
        }
        let isLastTaskRun = Promise<Void>()
        tasks.schedule { isLastTaskRun.complete(.success(())) }
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { await tasks.run() }
            try await isLastTaskRun.value()
            isReleased.complete(.success(()))
            try await eventually("all requests have run") { counts.soFar.count == 100 }
            group.cancelAll()
        }
        #expect(counts.soFar.allSatisfy { (1...16).contains($0) })
    }
}

import Model
import Samples
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import Apps

@Suite struct BackgroundTasksTests {
    @Test func `a full queue drops further tasks`() {
        let tasks = BackgroundTasks()

        let isQueued = (1...1_025).map { _ in tasks.schedule {} }

        #expect(isQueued == Array(repeating: true, count: 1_024) + [false])
    }

    @Test func `of a flood of requests to an app most are dropped while the app is silent`() async throws {
        let tasks = BackgroundTasks()
        let (waiting, isReleased) = (Promise<Void>(), Promise<Void>())
        let sent = Atomic(0)
        let app: EndpointID = "silent"
        let request: @Sendable () async throws -> Void = {
            sent.add(1, ordering: .sequentiallyConsistent)
            while !isReleased.isCompleted { try await Task.sleep(for: .milliseconds(1)) }
        }
        for _ in 1...BackgroundTasks.maxWaitingRequests { tasks.scheduleRequest(of: app, request) }
        tasks.schedule { waiting.complete(.success(())) }
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { await tasks.run() }
            try await waiting.value()
            try await eventually("all requests have begun or wait") { tasks.waitingRequests(of: app) == 64 }
            for _ in 1...500 { tasks.scheduleRequest(of: app, request) }
            isReleased.complete(.success(()))
            try await eventually("no request waits") { tasks.waitingRequests(of: app) == 0 }
            group.cancelAll()
        }
        #expect(sent.load(ordering: .sequentiallyConsistent) == BackgroundTasks.maxWaitingRequests)
    }

    @Test func `an app has two requests at once, and delays no other app and no other task`() async throws {
        let tasks = BackgroundTasks()
        let running = Atomic(0)
        let isReleased = Promise<Void>()
        let counts = Replay<Int>()
        let (silent, other): (EndpointID, EndpointID) = ("silent", "other")
        for _ in 1...20 {
            tasks.scheduleRequest(of: silent) {
                counts.say(running.add(1, ordering: .sequentiallyConsistent).newValue)
                while !isReleased.isCompleted { try await Task.sleep(for: .milliseconds(1)) }
                running.subtract(1, ordering: .sequentiallyConsistent)
            }
        }
        let (isOtherAsked, isLastTaskRun) = (Promise<Void>(), Promise<Void>())
        tasks.scheduleRequest(of: other) { isOtherAsked.complete(.success(())) }
        tasks.schedule { isLastTaskRun.complete(.success(())) }
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { await tasks.run() }
            try await isOtherAsked.value()
            try await isLastTaskRun.value()
            isReleased.complete(.success(()))
            try await eventually("all requests have run") { counts.soFar.count == 20 }
            group.cancelAll()
        }
        #expect(counts.soFar.allSatisfy { (1...BackgroundTasks.maxConcurrentRequests).contains($0) })
    }
}

import NIOCore
import NIOPosix
import Testing

@testable import API

@Suite(.timeLimit(.minutes(1)))
struct EventLoopTaskExecutorTests {
    private actor OtherActor {
        func run() {}
    }

    @Test func `a task and its children run on the loop, and return to the loop after other executors`() async throws {
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        let isExpectedThread = await withTaskGroup(of: [Bool].self) { group in
            // Only the task retains the executor.
            group.addTask(executorPreference: EventLoopTaskExecutor(loop)) {
                var isExpectedThread = [loop.inEventLoop]
                try? await Task.sleep(for: .milliseconds(1))
                isExpectedThread.append(loop.inEventLoop)
                await OtherActor().run()
                async let child = loop.inEventLoop
                isExpectedThread.append(await child)
                isExpectedThread.append(
                    await withTaskExecutorPreference(globalConcurrentExecutor) { !loop.inEventLoop }
                )
                isExpectedThread.append(loop.inEventLoop)
                return isExpectedThread
            }
            return await group.reduce(into: []) { $0 += $1 }
        }

        #expect(isExpectedThread == [true, true, true, true, true])
    }

    @Test func `ten thousand tasks on one loop all complete`() async {
        let executor = EventLoopTaskExecutor(MultiThreadedEventLoopGroup.singleton.next())
        let count = await withTaskGroup(of: Int.self) { group in
            for _ in 0..<10_000 {
                group.addTask(executorPreference: executor) {
                    await Task.yield()
                    return 1
                }
            }
            return await group.reduce(0, +)
        }

        #expect(count == 10_000)
    }
}

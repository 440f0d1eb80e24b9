import NIOCore
import NIOPosix
import Testing

@testable import API

@Suite(.timeLimit(.minutes(1)))
struct EventLoopTaskExecutorTests {
    private actor Elsewhere {
        func visit() {}
    }

    @Test func `a task and what it waits for run on the loop, and come back to it from elsewhere`() async throws {
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        let places = await withTaskGroup(of: [Bool].self) { group in
            // Nobody but the task holds on to the executor.
            group.addTask(executorPreference: EventLoopTaskExecutor(loop)) {
                var places = [loop.inEventLoop]
                try? await Task.sleep(for: .milliseconds(1))
                places.append(loop.inEventLoop)
                await Elsewhere().visit()
                async let child = loop.inEventLoop
                places.append(await child)
                places.append(await withTaskExecutorPreference(globalConcurrentExecutor) { !loop.inEventLoop })
                places.append(loop.inEventLoop)
                return places
            }
            return await group.reduce(into: []) { $0 += $1 }
        }

        #expect(places == [true, true, true, true, true])
    }

    @Test func `ten thousand tasks on one loop all end`() async {
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

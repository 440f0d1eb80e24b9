import SystemIO
import Testing

@testable import Tunnels

@Suite(.timeLimit(.minutes(1))) struct DialPlacesTests {
    @Test func `who finds no place waits until one is given back, and nobody else gets it`() async throws {
        let places = DialPlaces(2)
        await places.take()
        await places.take()

        let isInEarly = await withTaskGroup(of: Bool.self) { group in
            group.addTask {
                await places.take()
                return true
            }
            group.addTask {
                try? await Task.sleep(for: .milliseconds(30))
                return false
            }
            let first = await group.next()
            places.giveBack()
            return first
        }

        #expect(isInEarly == false)
        // Both are taken again: one of the first two, and the one that waited.
        places.giveBack()
        places.giveBack()
        await places.take()
        await places.take()
    }

    @Test func `as many as there are places are inside at a time`() async {
        let places = DialPlaces(3)
        let inside = Crowd()

        await withDiscardingTaskGroup { group in
            for _ in 0..<200 {
                await places.take()
                group.addTask {
                    await inside.enter()
                    await Task.yield()
                    await inside.leave()
                    places.giveBack()
                }
            }
        }

        #expect(await inside.most == 3)
    }

    private actor Crowd {
        private var count = 0
        private(set) var most = 0

        func enter() {
            count += 1
            most = max(most, count)
        }

        func leave() { count -= 1 }
    }
}

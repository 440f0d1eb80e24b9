import SystemIO
import Testing

@testable import Tunnels

@Suite struct ConnectQueueTests {
    private final class Server: Sendable {}

    private let server = Server()

    private func key(_ device: UInt32) -> ConnectLimitKey { ConnectLimitKey(server: server, device: device) }

    private func handle(_ index: Int) -> ConnectionHandle { ConnectionHandle(index: index, generation: 1) }

    @Test func `at most four connects wait for one server, and the others follow in order`() {
        var queue = ConnectQueue()
        var slots: [ConnectQueue.Slot] = []
        for index in 0..<4 { slots += queue.enter(handle(index), key(UInt32(index))).map { [$0] } ?? [] }

        #expect(slots.count == 4)
        #expect(queue.enter(handle(4), key(4))?.key == nil)
        #expect(queue.enter(handle(5), key(5))?.key == nil)
        #expect(queue.next()?.handle == nil)
        queue.release(slots.removeFirst())
        #expect(queue.next()?.handle == handle(4))
        #expect(queue.next()?.handle == nil)
    }

    @Test func `a device that never answers delays only connects to itself`() {
        var queue = ConnectQueue()
        for index in 0..<4 {
            guard var slot = queue.enter(handle(index), key(1)) else {
                Issue.record("there is no slot")
                return
            }
            queue.releaseServer(&slot)
        }

        #expect(queue.enter(handle(4), key(1))?.key == nil)
        #expect(queue.enter(handle(5), key(2))?.key == key(2))
        #expect(queue.next()?.handle == nil)
    }

    @Test func `a connection that leaves the queue gets no slot`() {
        var queue = ConnectQueue()
        let slots = (0..<4).compactMap { queue.enter(handle($0), key(1)) }
        _ = queue.enter(handle(4), key(1))
        _ = queue.enter(handle(5), key(1))

        queue.leave(handle(4))
        for slot in slots { queue.release(slot) }

        #expect(queue.next()?.handle == handle(5))
        #expect(queue.next()?.handle == nil)
    }

    @Test func `a slot is released once, and then every slot is free again`() {
        var queue = ConnectQueue()
        let slots = (0..<4).compactMap { queue.enter(handle($0), key(1)) }
        for var slot in slots {
            queue.releaseServer(&slot)
            queue.releaseServer(&slot)
            queue.release(slot)
        }

        let again = (0..<5).compactMap { queue.enter(handle($0), key(2)) }

        #expect(slots.count == 4 && again.count == 4)
    }
}

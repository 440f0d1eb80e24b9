import SystemIO
import Testing

@testable import Tunnels

@Suite struct ConnectQueueTests {
    private final class Server: Sendable {}

    private let server = Server()

    private func key(_ device: UInt32) -> ConnectLimitKey { ConnectLimitKey(server: server, device: device) }

    private func token(_ index: Int) -> ConnectionToken { ConnectionToken(index: index, generation: 1) }

    @Test func `at most four connects wait for one server, and the others follow in order`() {
        var queue = ConnectQueue()
        var places: [ConnectQueue.Place] = []
        for index in 0..<4 { places += queue.enter(token(index), key(UInt32(index))).map { [$0] } ?? [] }

        #expect(places.count == 4)
        #expect(queue.enter(token(4), key(4))?.key == nil)
        #expect(queue.enter(token(5), key(5))?.key == nil)
        #expect(queue.next()?.token == nil)
        queue.release(places.removeFirst())
        #expect(queue.next()?.token == token(4))
        #expect(queue.next()?.token == nil)
    }

    @Test func `a device that never answers delays only connects to itself`() {
        var queue = ConnectQueue()
        for index in 0..<4 {
            guard var place = queue.enter(token(index), key(1)) else {
                Issue.record("there is no place")
                return
            }
            queue.releaseServer(&place)
        }

        #expect(queue.enter(token(4), key(1))?.key == nil)
        #expect(queue.enter(token(5), key(2))?.key == key(2))
        #expect(queue.next()?.token == nil)
    }

    @Test func `a connection that leaves the queue gets no place`() {
        var queue = ConnectQueue()
        let places = (0..<4).compactMap { queue.enter(token($0), key(1)) }
        _ = queue.enter(token(4), key(1))
        _ = queue.enter(token(5), key(1))

        queue.leave(token(4))
        for place in places { queue.release(place) }

        #expect(queue.next()?.token == token(5))
        #expect(queue.next()?.token == nil)
    }

    @Test func `released places leave nothing behind`() {
        var queue = ConnectQueue()
        guard var place = queue.enter(token(0), key(1)) else {
            Issue.record("there is no place")
            return
        }

        queue.releaseServer(&place)
        queue.releaseServer(&place)
        queue.release(place)

        #expect(queue.isEmpty)
    }
}

import SystemIO
import Testing

@testable import Tunnels

@Suite struct ConnectionTableTests {
    private let connections = ConnectionTable()

    @Test func `the timer of an ended connection does not end the wait`() {
        let handle = connections.reserve()
        connections.schedule(handle, at: .now + .milliseconds(5))
        connections.remove(handle.index)

        #expect(connections.nextTimeout() == -1)
        #expect(connections.popDueTimer(at: .now + .seconds(1)) == nil)
    }

    @Test func `the timer of an acceptor ends the wait`() {
        let handle = ConnectionHandle(acceptor: 3)
        connections.schedule(handle, at: .now + .milliseconds(500))

        #expect((1...501).contains(connections.nextTimeout()))
        #expect(connections.popDueTimer(at: .now + .seconds(1)) == handle)
    }
}

import SystemIO
import Testing

@testable import Tunnels

@Suite struct ConnectionTableTests {
    private let connections = ConnectionTable()

    @Test func `the timer of an ended connection does not end the wait`() {
        let token = connections.reserve()
        connections.schedule(token, at: .now + .milliseconds(5))
        connections.remove(token.index)

        #expect(connections.nextTimeout() == -1)
        #expect(connections.popDueTimer(at: .now + .seconds(1)) == nil)
    }

    @Test func `the timer of an acceptor ends the wait`() {
        let token = ConnectionToken(acceptor: 3)
        connections.schedule(token, at: .now + .milliseconds(500))

        #expect((1...501).contains(connections.nextTimeout()))
        #expect(connections.popDueTimer(at: .now + .seconds(1)) == token)
    }
}

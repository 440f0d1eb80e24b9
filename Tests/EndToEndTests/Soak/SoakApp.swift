import TestSupport

/// An app that takes so many bytes of the pattern and gives so many, both at once, and closes.
final class SoakApp: Sendable {
    let up: Int
    let down: Int
    private let server: LoopbackServer

    init(on address: String, up: Int, down: Int, _ tally: SoakTally, in scratch: ScratchFolder) throws {
        (self.up, self.down) = (up, down)
        server = try LoopbackServer(address: address, in: scratch) { socket in
            let peer = PatternPeer(socket, deadline: .now + .seconds(60))
            tally.served(peer.exchange(sending: down, expecting: up).received)
        }
    }

    var port: UInt16 { server.port }
}

import TestSupport

/// An app that receives and sends fixed numbers of pattern bytes at the same time, and closes.
final class SoakApp: Sendable {
    let up: Int
    let down: Int
    private let server: LoopbackServer

    init(on address: String, up: Int, down: Int, _ results: SoakResults, in scratch: ScratchFolder) throws {
        (self.up, self.down) = (up, down)
        server = try LoopbackServer(address: address, in: scratch) { socket in
            let peer = PatternPeer(socket, deadline: .now + .seconds(60))
            results.served(peer.exchange(sending: down, expecting: up).received)
        }
    }

    var port: UInt16 { server.port }
}

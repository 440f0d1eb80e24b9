import Logging
import Model
import SystemIO
import Testing

@testable import patchbayd

/// The TCP sockets of the API beside another program that has one of their addresses.
@Suite struct APITCPSocketsTests {
    private static func open(beside host: String) throws -> (APITCPSockets, Listener) {
        let any = try #require(SocketAddress(numeric: host, port: 0))
        let other = try Listener(on: any)
        let port = try #require(other.address.port)
        let activation = try SocketActivation(environment: [:], logger: LogLines().logger)
        let sockets = APITCPSockets(.init(port: port), activation: activation, logger: LogLines().logger)
        return (sockets, other)
    }

    @Test func `a taken [::1] is a problem, because localhost may lead there`() throws {
        let (sockets, other) = try Self.open(beside: "::1")

        #expect(sockets.port == other.address.port)
        let problem = try #require(sockets.status?.problem)
        #expect(problem.subject == "api" && problem.text.contains("another program listens at \(other.address)"))
        #expect(problem.command == "sudo ss -ltnp 'sport = :\(other.address.port ?? 0)'")
    }

    @Test func `with a taken 127.0.0.1 the page has no address, although [::1] is open`() throws {
        let (sockets, other) = try Self.open(beside: "127.0.0.1")

        #expect(sockets.port == nil && sockets.descriptors.count == 1)
        #expect(sockets.status?.problem?.text.contains("\(other.address)") == true)
    }
}

import CLinux
import Glibc
import SystemIO
import Testing

@Suite struct SocketOwnerLookupTests {
    private let owners = SocketOwnerLookup()

    /// The address families of the listener and the client.
    enum Family: CaseIterable {
        case ipv4
        case ipv6
        /// An IPv4 client of an IPv6 listener, which sees ::ffff:127.0.0.1.
        case mapped

        func listener() throws -> Listener {
            switch self {
            case .ipv4: try Listener(on: .ipv4(INADDR_LOOPBACK, port: 0))
            case .ipv6: try Listener(on: .ipv6(1, port: 0, scope: 0))
            case .mapped: try Listener(on: .ipv6(0, port: 0, scope: 0))
            }
        }

        func target(_ listener: Listener) -> SocketAddress {
            self == .mapped ? .ipv4(INADDR_LOOPBACK, port: listener.address.port ?? 0) : listener.address
        }
    }

    private func lookUp(_ accepted: borrowing Descriptor) throws -> SocketOwnerLookup.Answer {
        let peer = try #require(SocketAddress.peer(of: accepted.number))
        let local = try #require(SocketAddress.local(of: accepted.number))
        return try owners.owner(of: peer, connectedTo: local)
    }

    @Test(arguments: Family.allCases)
    func `the owner of an open or half-closed connection is found, and a closed one is reported as closed`(
        family: Family
    ) async throws {
        let listener = try family.listener()
        var client: Descriptor? = try await family.target(listener).connect(within: .seconds(5))
        let accepted = try await listener.accept()

        #expect(try lookUp(accepted) == .user(getuid()))
        if let number = client?.number { shutdown(number, CInt(SHUT_WR)) }
        #expect(try lookUp(accepted) == .user(getuid()))
        client = nil
        #expect(try lookUp(accepted) == .closed)
    }

    @Test(.enabled(if: geteuid() == 0, "only root may give a socket away"), arguments: Family.allCases)
    func `the owner of another user's connection is that user`(family: Family) async throws {
        let listener = try family.listener()
        let client = try await family.target(listener).connect(within: .seconds(5))
        try #require(fchown(client.number, 65_534, 65_534) == 0)
        let accepted = try await listener.accept()

        #expect(try lookUp(accepted) == .user(65_534))
    }

    @Test(arguments: Family.allCases)
    func `a listening socket is found by its address, and a closed one is not`(family: Family) async throws {
        let listener = try family.listener()
        let address = family.target(listener)

        #expect(try owners.isListening(on: address))
        let client = try await address.connect(within: .seconds(5))
        let accepted = try await listener.accept()
        listener.close()
        // The port is still in use, by a connection.
        #expect(try !owners.isListening(on: address))
        _ = (client.number, accepted.number)
    }

    @Test func `an IPv6 client of an IPv4 listener is found`() async throws {
        let listener = try Listener(on: .ipv4(INADDR_LOOPBACK, port: 0))
        let mapped = SocketAddress.ipv6(0xFFFF_7F00_0001, port: listener.address.port ?? 0, scope: 0)
        let client = try await mapped.connect(within: .seconds(5))
        let accepted = try await listener.accept()

        #expect(try lookUp(accepted) == .user(getuid()))
        withExtendedLifetime(client) {}
    }

    @Test func `a client that is bound to the loopback interface is found`() async throws {
        let listener = try Listener(on: .ipv4(INADDR_LOOPBACK, port: 0))
        let client = try listener.address.makeSocket()
        // Available without root since Linux 5.7.
        try #require(setsockopt(client.number, SOL_SOCKET, SO_BINDTODEVICE, "lo", 3) == 0)
        _ = try listener.address.withRaw { connect(client.number, $0, $1) }
        let accepted = try await listener.accept()

        #expect(try lookUp(accepted) == .user(getuid()))
    }

    @Test func `a listener on the port of a closed client is not mistaken for the client`() async throws {
        let listener = try Listener(on: .ipv4(INADDR_LOOPBACK, port: 0))
        let other = try Listener(on: .ipv4(INADDR_LOOPBACK, port: 0))

        // No connection has these two addresses, so the kernel returns the other listener.
        #expect(try owners.owner(of: other.address, connectedTo: listener.address) == .closed)
    }

    @Test func `1,000 concurrent lookups get their own results`() async throws {
        let listener = try Listener(on: .ipv4(INADDR_LOOPBACK, port: 0))
        let client = try await listener.address.connect(within: .seconds(5))
        let accepted = try await listener.accept()
        let (peer, local) = (try #require(SocketAddress.peer(of: accepted.number)), listener.address)

        try await withThrowingTaskGroup(of: Bool.self) { group in
            for round in 0..<1_000 {
                group.addTask { [owners] in
                    // Every other lookup is for the server's end, which this process owns too.
                    let answer =
                        round % 2 == 0
                        ? try owners.owner(of: peer, connectedTo: local)
                        : try owners.owner(of: local, connectedTo: peer)
                    return answer == .user(getuid())
                }
            }
            for try await isRight in group { #expect(isRight) }
        }
        withExtendedLifetime(client) {}
    }
}

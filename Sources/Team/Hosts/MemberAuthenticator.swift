package import AccessControl
package import HTTPTypes
package import Model
package import NIOCore
import Transport

/// TLS of the team listener, which names the host of each client.
package protocol MemberTransportSecurity: Sendable {
    /// Returns the host in the client's verified certificate, and the key that the client proved to hold; nil if the
    /// client sent no certificate. Called on the channel's event loop, after the handshake.
    func host(of channel: any Channel) -> (host: HostName, key: KeyPin)?
}

extension MemberServerTLS: MemberTransportSecurity {}

/// Identifies the clients of the team listener: the host by its certificate, and the client of that host by the header
/// `Patchbay-Caller`.
package struct MemberAuthenticator: Sendable {
    /// The peer of a connection, as its handshake proved.
    private struct Peer: Sendable {
        let host: HostName
        let key: KeyPin
    }

    /// The route of a host that has no certificate yet.
    private static let joinPath = "/v1/team/members"

    private let security: any MemberTransportSecurity
    private let members: any MemberDirectory
    private let connections: MemberConnections
    private let peers = ChannelStorage<Peer?>()
    /// The last caller of each connection with the header that named it. Most requests repeat the header.
    private let callers = ChannelStorage<(header: String, caller: TeamCaller)>()

    package init(
        _ security: any MemberTransportSecurity,
        members: any MemberDirectory,
        connections: MemberConnections
    ) {
        (self.security, self.members, self.connections) = (security, members, connections)
    }

    /// Returns the principal of a request. A client without a certificate is anonymous, and may only join.
    ///
    /// - Throws: `Problem` for a host that is no member, for a token, for an invalid header, and for any other request
    ///   without a certificate.
    package func authenticate(_ request: HTTPRequest, on channel: any Channel) async throws -> Principal {
        let source = RequestSource.remote(address: channel.remoteAddress?.ipAddress ?? "?")
        guard request.headerFields[values: .authorization].isEmpty else {
            throw Problem(
                .badRequest,
                "the team listener is for the hosts of the team, and accepts no token",
                hint: "use the remote listener: patchbay remote status"
            )
        }
        guard let peer = await peer(of: channel) else {
            guard request.method == .post, request.path == Self.joinPath else {
                throw Problem(
                    .unauthorized,
                    "the team listener is for the hosts of the team, and this client has no certificate of the team",
                    hint: "use the remote listener: patchbay remote status; a host joins with patchbay team join"
                )
            }
            return Principal(.anonymous, source: source, actor: .anonymous)
        }
        guard members.accepts(peer.host, key: peer.key) else {
            throw Problem(
                .forbidden,
                "the host \(peer.host) with this key is not a member of the team",
                hint: "on the host with the team's authority: patchbay team status"
            )
        }
        let client = MemberClient(host: peer.host, caller: try caller(of: request, on: channel))
        return Principal(
            .member(client),
            source: source,
            actor: .member(host: peer.host, client: client.caller?.name ?? client.name),
            key: peer.key
        )
    }

    private func peer(of channel: any Channel) async -> Peer? {
        if let peer = peers[channel] { return peer }
        let peer = try? await channel.eventLoop.submit { [security] in
            security.host(of: channel).map { Peer(host: $0.host, key: $0.key) }
        }.get()
        peers.set(peer, for: channel)
        // Before the members are asked, so that a removal at this moment closes the connection or refuses the request.
        if let peer { connections.add(channel, of: peer.host, key: peer.key) }
        return peer
    }

    private func caller(of request: HTTPRequest, on channel: any Channel) throws(Problem) -> TeamCaller? {
        let values = HTTPField.Name(TeamCaller.header).map { request.headerFields[values: $0] } ?? []
        guard let value = values.first else { return nil }
        if values.count == 1, let known = callers[channel], known.header == value { return known.caller }
        guard values.count == 1, let caller = TeamCaller(headerValue: value) else {
            throw Problem(
                .badRequest,
                "the header \(TeamCaller.header) is invalid",
                hint: "install the same version of Patchbay on all hosts of the team"
            )
        }
        callers.set((value, caller), for: channel)
        return caller
    }
}

import AccessControl
import Glibc
import HTTPTypes
import HummingbirdCore
import Model
import NIOCore
import Registry
import SystemIO
import Team
import Transport

/// Validates the head of each request and identifies the client, before any route handler runs.
struct Authenticator: Sendable {
    let validator: RequestValidator
    let owners: OwnerPolicy
    /// Tells which users are owners now, for sessions of browsers.
    let directory: OwnerDirectory
    let accessStore: AccessStore
    /// Looks up the user of a TCP client (sock_diag).
    let sockets: SocketOwnerLookup
    /// TLS of the remote listener; nil for the other listeners.
    let security: (any TransportSecurity)?
    /// Identifies the clients of the team listener; nil for the other listeners.
    let members: MemberAuthenticator?
    /// The hosts of the team, which name this one.
    let hosts: ListedHosts?
    /// The grant of every client of this listener; nil for a listener that is for several clients.
    let socketGrant: String?
    /// The principal of each connection before a token is shown. The kernel is asked once per connection.
    private let connectionPrincipals = ChannelStorage<Principal>()

    init(
        validator: RequestValidator,
        owners: OwnerPolicy,
        directory: OwnerDirectory? = nil,
        accessStore: AccessStore,
        sockets: SocketOwnerLookup,
        security: (any TransportSecurity)?,
        members: MemberAuthenticator? = nil,
        hosts: ListedHosts? = nil,
        socketGrant: String? = nil
    ) {
        self.members = members
        self.hosts = hosts
        self.socketGrant = socketGrant
        self.validator = validator
        self.owners = owners
        self.directory = directory ?? OwnerDirectory(owners)
        self.accessStore = accessStore
        self.sockets = sockets
        self.security = security
    }

    /// Returns the principal of a request: the grant of the bearer token or of the client's key, or else the peer of
    /// the connection.
    ///
    /// - Throws: `Problem`, `AccessError`.
    func authenticate(_ request: HTTPRequest, on channel: any Channel) async throws -> Principal {
        var principal = try await identify(request, on: channel)
        principal.host = hosts?.name
        return principal
    }

    private func identify(_ request: HTTPRequest, on channel: any Channel) async throws -> Principal {
        let peer = await connectionPrincipal(of: channel)
        if let leaked = LeakedTokenDetector.find(in: request) {
            for token in leaked { try await accessStore.grants.revokeLeaked(token, from: peer.source, user: peer.user) }
            throw Problem(
                .badRequest,
                "a token must not be in a URL or a cookie, where others can read it; the token is revoked",
                hint: "send it as Authorization: Bearer"
            )
        }
        try validator.validate(request)
        if let members { return try await members.authenticate(request, on: channel) }
        if let socketGrant { return try grantHolder(socketGrant, peer, request) }
        let authorizations = RequestValidator.values(of: "Authorization", in: request)
        guard !authorizations.isEmpty else { return keyHolder(peer) }
        let token: Token
        do {
            guard authorizations.count == 1, let text = Self.bearer(authorizations[0]) else {
                throw AccessError.notAToken
            }
            token = try Token(text)
        } catch {
            throw try await accessStore.rejectMalformedToken(from: peer.source)
        }
        let grant = try await accessStore.grants.authenticate(token, from: peer.source, user: peer.user)
        // A token of OAuth is for one MCP server, and for nothing else of the broker (RFC 8707).
        guard grant.resourcePath.map({ $0 == RequestValidator.path(of: request) }) ?? true else {
            throw AccessError.refused
        }
        if case .dashboard(let user) = grant.binding {
            // The user may have left the owners' group since the sign-in.
            guard await directory.includes(user) else {
                throw try await accessStore.rejectMalformedToken(from: peer.source)
            }
            return try Principal(session: grant, source: peer.source, user: peer.user)
        }
        return Principal(
            .grant(grant),
            source: peer.source,
            actor: .grant(grant.id),
            user: peer.user,
            key: peer.key
        )
    }

    /// Returns the principal of a client on the socket of a grant. Its user decides nothing: in a container it may be
    /// root.
    ///
    /// - Throws: `Problem` after the end of the grant, or for a request with a token.
    private func grantHolder(_ id: String, _ peer: Principal, _ request: HTTPRequest) throws -> Principal {
        guard RequestValidator.values(of: "Authorization", in: request).isEmpty else {
            throw Problem(
                .badRequest,
                "this socket is for one grant and accepts no token",
                hint: "leave out the header Authorization; with patchbay, leave out --broker"
            )
        }
        guard let grant = accessStore.grants.authenticate(clientOfSocketGrant: id) else {
            throw Problem(
                .unauthorized,
                "the grant of this socket has ended",
                hint: "ask an owner for a new socket: patchbay pair --socket PATH"
            )
        }
        return Principal(.grant(grant), source: peer.source, actor: .grant(id), user: peer.user)
    }

    /// Returns the principal of a request without a token: the grant of the client's key, if there is a valid one.
    ///
    /// Looked up for each request, because the grant may have ended since the last one.
    private func keyHolder(_ peer: Principal) -> Principal {
        guard let key = peer.key, let grant = accessStore.grants.authenticate(key: key, from: peer.source) else {
            return peer
        }
        return Principal(.grant(grant), source: peer.source, actor: .grant(grant.id), key: key)
    }

    private func connectionPrincipal(of channel: any Channel) async -> Principal {
        if let peer = connectionPrincipals[channel] { return peer }
        let peer = await identifyPeer(of: channel)
        connectionPrincipals.set(peer, for: channel)
        return peer
    }

    /// Identifies the peer of a connection by its credentials, without a token.
    private func identifyPeer(of channel: any Channel) async -> Principal {
        if let security { return await remotePeer(of: channel, security) }
        if let socketGrant {
            let user = await PeerCredentials(of: channel)?.user
            return Principal(.anonymous, source: .socket(grant: socketGrant), actor: .grant(socketGrant), user: user)
        }
        guard let credentials = await PeerCredentials(of: channel) else { return anonymous(on: channel) }
        var isOwner = credentials.user == 0 || credentials.user == owners.user
        if !isOwner, let group = owners.group { isOwner = await credentials.isMember(of: group, on: channel) }
        return Principal(
            isOwner ? .owner : .localUser,
            source: .unix(uid: credentials.user),
            actor: credentials.auditActor,
            user: credentials.user
        )
    }

    private func remotePeer(of channel: any Channel, _ security: any TransportSecurity) async -> Principal {
        let key = try? await channel.eventLoop.submit { security.clientKey(of: channel) }.get()
        return Principal(
            .anonymous,
            source: .remote(address: channel.remoteAddress?.ipAddress ?? "?"),
            actor: .anonymous,
            key: key
        )
    }

    private func anonymous(on channel: any Channel) -> Principal {
        Principal(
            .anonymous,
            source: .tcp(address: channel.remoteAddress?.ipAddress ?? "?"),
            actor: .anonymous,
            user: sockets.user(of: channel)
        )
    }

    /// Returns the token of a bearer credential (RFC 6750, section 2.1). The scheme is case-insensitive. Several spaces may
    /// follow it (RFC 9110, section 11.4). White space at the end of a field is no part of its value (section 5.5).
    static func bearer(_ text: String) -> Substring? {
        let parts = text.split(separator: " ")
        guard parts.count == 2, parts[0].lowercased() == "bearer" else { return nil }
        return parts[1]
    }
}

/// The users with full access on the Unix socket: root, the broker's own user, and the members of a group.
package struct OwnerPolicy: Sendable {
    /// The name of the owners' group.
    package static let groupName = "patchbay"

    package let user: UInt32
    /// The ID of the owners' group; nil if the group does not exist.
    package let group: UInt32?

    /// Looks up the owners' group. Blocks, so the broker calls this only at startup.
    package static func current() -> OwnerPolicy {
        // Group 0 is never used, because unfilled entries of SO_PEERGROUPS are 0 and would match.
        let group = getgrnam(groupName).map { UInt32($0.pointee.gr_gid) }
        return OwnerPolicy(user: geteuid(), group: group == 0 ? nil : group)
    }
}

import AccessControl
import Glibc
import HTTPTypes
import Hummingbird
import Model
import NIOCore
import SystemIO

/// Receives each request before any route sees it: looks at its head, and finds out who makes it.
struct Authenticator: Sendable {
    let border: RequestValidator
    let owners: OwnerPolicy
    let pairing: AccessStore
    /// Whose a TCP client is, by the kernel's word.
    let sockets: SocketOwnerLookup
    /// Who each connection is of: asked of the kernel once, and not with every request.
    private let arrivals = ChannelStorage<Principal>()

    init(border: RequestValidator, owners: OwnerPolicy, pairing: AccessStore, sockets: SocketOwnerLookup) {
        self.border = border
        self.owners = owners
        self.pairing = pairing
        self.sockets = sockets
    }

    /// - Throws: `Problem`, `AccessError`.
    func visitor(_ request: HTTPRequest, on channel: any Channel) async throws -> Principal {
        let arrival = await known(on: channel)
        if let exposed = LeakedTokenDetector.find(in: request) {
            for token in exposed { try await pairing.expose(token, from: arrival.origin) }
            throw Problem(
                .badRequest,
                "a token does not belong into an address or a cookie, where others read along; it is revoked",
                next: "send it as Authorization: Bearer"
            )
        }
        try border.check(request)
        let shown = RequestValidator.values(of: "Authorization", in: request)
        guard !shown.isEmpty else { return arrival }
        let token: Token
        do {
            guard shown.count == 1, let text = Self.bearer(shown[0]) else { throw AccessError.notAToken }
            token = try Token(text)
        } catch {
            throw try await pairing.refuseGarbage(from: arrival.origin)
        }
        let grant = try await pairing.authenticate(token, from: arrival.origin)
        return Principal(
            standing: .grant(grant),
            origin: arrival.origin,
            caller: .grant(grant.id),
            user: arrival.user
        )
    }

    private func known(on channel: any Channel) async -> Principal {
        if let arrival = arrivals[channel] { return arrival }
        let arrival = await arrival(on: channel)
        arrivals.set(arrival, for: channel)
        return arrival
    }

    /// Who it is before it has shown anything.
    private func arrival(on channel: any Channel) async -> Principal {
        guard let peer = await PeerCredentials(of: channel) else { return stranger(on: channel) }
        var isOwner = peer.user == 0 || peer.user == owners.user
        if !isOwner, let group = owners.group { isOwner = await peer.isMember(of: group, on: channel) }
        return Principal(
            standing: isOwner ? .owner : .user,
            origin: .unix(uid: peer.user),
            caller: peer.caller,
            user: peer.user
        )
    }

    private func stranger(on channel: any Channel) -> Principal {
        Principal(
            standing: .stranger,
            origin: .tcp(address: channel.remoteAddress?.ipAddress ?? "?"),
            caller: .stranger,
            user: sockets.user(of: channel)
        )
    }

    /// RFC 6750, section 2.1; the scheme's case does not matter.
    static func bearer(_ text: String) -> Substring? {
        let parts = text.split(separator: " ", maxSplits: 1)
        guard parts.count == 2, parts[0].lowercased() == "bearer" else { return nil }
        return parts[1]
    }
}

/// Whose processes may do everything, on the unix socket: root, the broker's own user, and a group that people are put in.
package struct OwnerPolicy: Sendable {
    /// The group's name.
    package static let groupName = "patchbay"

    package let user: UInt32
    /// Nil where there is no such group.
    package let group: UInt32?

    package init(user: UInt32, group: UInt32?) {
        self.user = user
        self.group = group
    }

    /// Looks the group up. Blocks; for the start only.
    package static func ofThisMachine() -> OwnerPolicy {
        // Root's own group is nobody's favour: it would match what SO_PEERGROUPS leaves empty.
        let group = getgrnam(groupName).map { UInt32($0.pointee.gr_gid) }
        return OwnerPolicy(user: geteuid(), group: group == 0 ? nil : group)
    }
}

import Crypto
import FoundationEssentials
package import Model
import Synchronization

/// Grants that are bound to a unix socket: every client of the socket has the grant, whatever user it runs as.
extension GrantService {
    /// Creates a grant that is bound to a socket. The grant has no token.
    ///
    /// - Throws: `AccessError.tooWide`, `.outOfRange`, `.limit`, `.notSaved`.
    package func create(_ spec: SocketGrantSpec, by caller: AuditActor, from source: RequestSource) async throws
        -> Grant
    {
        try await store.transaction { store in
            var token = Token(random: .grant)
            while store.state.grants[token.id] != nil { token = Token(random: .grant) }
            let now = store.now()
            let change = try store.state.grant(spec, as: token, by: caller, from: source, at: now)
            try store.commit(change)
            return change.grants[0].grant(at: now)
        }
    }

    /// Returns the grant of a socket, and records its use. Nil after the end of the grant.
    package func authenticate(clientOfSocketGrant id: String) -> Grant? { store.live.grant(ofSocket: id) }

    /// The sockets of the valid grants.
    package var sockets: [SocketGrant] {
        get async {
            let now = store.now()
            return await store.state.grants.values.compactMap { grant in
                guard case .socket(let path) = grant.binding, grant.endReason(at: now) == nil else { return nil }
                return SocketGrant(id: grant.id, path: path)
            }
        }
    }
}

/// A grant and its socket.
package struct SocketGrant: Hashable, Sendable {
    package let id: String
    package let path: String
}

extension AccessState {
    /// Returns the change that creates a grant for a socket. No one learns the secret of the token.
    fileprivate func grant(
        _ spec: SocketGrantSpec,
        as token: Token,
        by caller: AuditActor,
        from source: RequestSource,
        at now: MonotonicTime
    ) throws(AccessError) -> ChangeSet {
        let limits = InviteSpec(
            spec.permissions,
            grantLifetimeSeconds: spec.lifetimeSeconds,
            grantIdleSeconds: spec.idleSeconds
        )
        try limits.check()
        guard !spec.permissions.scopes.contains(.admin) else {
            throw .tooWide("\(Scope.admin.rawValue) would make every client of the socket an owner")
        }
        guard !spec.permissions.scopes.contains(.endpointRegister) else {
            throw .tooWide(
                "\(Scope.endpointRegister.rawValue) would let a container without network reach the loopback interface of "
                    + "the broker's machine; an app that registers needs a grant with a token (patchbay pair)"
            )
        }
        var event = AuditEvent(.granted, by: caller, from: source, grant: token.id)
        event.subject = spec.name
        var change = ChangeSet([event])
        change.purged = try evictions(forGrantUnder: nil)
        change.grants = [
            GrantRecord(
                id: token.id,
                digest: Data(token.digest),
                name: SanitizedText(spec.name.text),
                permissions: spec.permissions,
                binding: .socket(spec.path),
                parent: nil,
                invite: nil,
                client: Data(),
                createdAt: now,
                expiresAt: now + (spec.lifetimeSeconds ?? limits.defaultGrantLifetime),
                lastUsedAt: now,
                idleSeconds: spec.idleSeconds ?? limits.defaultGrantIdle
            )
        ]
        return change
    }
}

extension InMemoryAccessState {
    fileprivate func grant(ofSocket id: String) -> Grant? {
        let now = now()
        return content.withLock { content in
            guard content.isLive(id, at: now), let record = content.state.grants[id],
                case .socket = record.binding
            else { return nil }
            content.touch(id, at: now)
            return record.grant(at: now)
        }
    }
}

import AccessControl
import Foundation
import Model

/// Principals for tests of the MCP servers.
extension Principal {
    /// A process of root, which has full access.
    static let sampleOwner = Principal(
        .owner,
        source: .unix(uid: 0),
        actor: .process(uid: 0, pid: 1, executable: SanitizedText("test")),
        user: 0
    )

    /// The holder of a grant with these scopes.
    static func holder(
        of id: String,
        _ scopes: Set<Scope>,
        on selector: Selector = .all,
        tools: ToolFilter = .all
    ) -> Principal {
        let grant = Grant(
            id: id,
            name: SanitizedText("test"),
            permissions: Permissions(scopes, on: selector, tools: tools),
            binding: .bearer,
            parent: nil,
            invite: nil,
            createdAt: .distantPast,
            expiresAt: .distantFuture,
            lastUsedAt: .distantPast,
            idleSeconds: 3_600,
            endReason: nil
        )
        return Principal(.grant(grant), source: .tcp(address: "127.0.0.1"), actor: .grant(id))
    }
}

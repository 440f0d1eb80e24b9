package import AccessControl
package import Model

extension Principal {
    /// A process of root, which has full access.
    package static let sampleOwner = Principal(
        .owner,
        source: .unix(uid: 0),
        actor: .process(uid: 0, pid: 1, executable: SanitizedText("test")),
        user: 0
    )

    /// The holder of a grant with these scopes.
    package static func holder(
        of id: String = "g1",
        _ scopes: Set<Scope>,
        on selector: Selector = .all,
        tools: ToolFilter = .all
    ) -> Principal {
        let grant = Grant.sample(id, name: "test", Permissions(scopes, on: selector, tools: tools))
        return Principal(.grant(grant), source: .tcp(address: "127.0.0.1"), actor: .grant(id))
    }
}

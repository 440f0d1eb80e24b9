/// What is to be ended.
package enum RevocationTarget: Hashable, Sendable {
    /// A grant with everything under it, or an invite.
    case one(String)
    /// Everything that the caller may end; for an owner every grant and every open invite.
    case all
}

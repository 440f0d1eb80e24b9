/// The ids of the grants and invites that ended: the answer to a revocation. When it comes, everything of theirs is cut.
package struct RevocationResult: Hashable, Sendable, Codable {
    package let ended: [String]

    package init(ended: [String]) { self.ended = ended }
}

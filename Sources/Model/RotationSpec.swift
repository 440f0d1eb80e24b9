/// How a grant's secret is to be replaced: the body of `POST /v1/grants/{id}/rotate`.
package struct RotationSpec: Hashable, Sendable, Codable {
    /// Seconds that the old secret goes on counting: 0 to 60. Nil is none.
    package var grace: Int?

    package init(grace: Int? = nil) { self.grace = grace }
}

/// Everything that Patchbay publishes: the answer to `GET /v1/advertisements`.
package struct AdvertisementList: Hashable, Sendable, Codable {
    /// The version of this document's form.
    package let schema: Int
    package let advertisements: [Advertisement]

    package init(advertisements: [Advertisement]) {
        schema = 1
        self.advertisements = advertisements
    }
}

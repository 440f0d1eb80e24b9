/// Every endpoint as of one revision: the answer to `GET /v1/endpoints` and the `snapshot` event.
package struct EndpointList: Hashable, Sendable, Codable {
    /// The version of this document's form.
    package let schema: Int
    package let revision: UInt64
    package let endpoints: [Endpoint]

    package init(revision: UInt64, endpoints: [Endpoint]) {
        schema = 1
        self.revision = revision
        self.endpoints = endpoints
    }
}

/// Every request that waits for an answer, the oldest first: the answer to `GET /v1/requests`.
package struct AccessRequestList: Hashable, Sendable, Codable {
    package let schema: Int
    package let requests: [AccessRequest]

    package init(requests: [AccessRequest]) {
        schema = 1
        self.requests = requests
    }
}

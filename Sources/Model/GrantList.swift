/// Every grant that counts or ended within a day, the newest first: the answer to `GET /v1/grants`.
package struct GrantList: Hashable, Sendable, Codable {
    package let schema: Int
    package let grants: [Grant]

    package init(grants: [Grant]) {
        schema = 1
        self.grants = grants
    }
}

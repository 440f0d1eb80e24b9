/// Every invite that counts or ended within a day, the newest first: the answer to `GET /v1/invites`.
package struct InviteList: Hashable, Sendable, Codable {
    package let schema: Int
    package let invites: [Invite]

    package init(invites: [Invite]) {
        schema = 1
        self.invites = invites
    }
}

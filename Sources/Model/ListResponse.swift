/// All endpoints at one revision: the response to `GET /v1/endpoints` and the `snapshot` event.
package struct EndpointList: Hashable, Sendable, Codable {
    /// The version of the document format.
    package let schema: Int
    package let revision: UInt64
    package let endpoints: [Endpoint]

    package init(revision: UInt64, endpoints: [Endpoint]) {
        schema = 1
        self.revision = revision
        self.endpoints = endpoints
    }
}

/// A list without a revision: the response to `GET /v1/tunnels` and to the other lists of the API.
///
/// Encodes as `{"schema": 1, "tunnels": [...]}`. The type of the items determines the name of the second member.
package struct ListResponse<Item: ListItem>: Hashable, Sendable {
    package let items: [Item]

    package init(_ items: [Item]) { self.items = items }
}

/// A type with a list in the API.
package protocol ListItem: Hashable, Sendable, Codable {
    /// The name of the JSON member with the items.
    static var listName: String { get }
}

extension Device: ListItem { package static let listName = "devices" }
extension Tunnel: ListItem { package static let listName = "tunnels" }
extension ReverseTunnel: ListItem { package static let listName = "reverseTunnels" }
extension Advertisement: ListItem { package static let listName = "advertisements" }
extension Approval: ListItem { package static let listName = "approvals" }
extension Denial: ListItem { package static let listName = "denials" }
extension Grant: ListItem { package static let listName = "grants" }
extension OpenTeamInvite: ListItem { package static let listName = "invites" }
extension Invite: ListItem { package static let listName = "invites" }
extension ConfigurationEntry: ListItem { package static let listName = "configuration" }
extension ProfileSummary: ListItem { package static let listName = "profiles" }
extension NearbyBroker: ListItem { package static let listName = "brokers" }
extension AccessRequest: ListItem { package static let listName = "requests" }

extension ListResponse: Codable {
    private enum Keys: CodingKey {
        case schema
        case items

        var stringValue: String { self == .items ? Item.listName : "schema" }
    }

    package init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Keys.self)
        _ = try container.decode(Int.self, forKey: .schema)
        items = try container.decode([Item].self, forKey: .items)
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Keys.self)
        try container.encode(1, forKey: .schema)
        try container.encode(items, forKey: .items)
    }
}

/// The number of deleted objects: the response to a `DELETE` request, for example `DELETE /v1/tunnels`.
package struct DeleteResponse: Hashable, Sendable, Codable {
    package let deletedCount: Int

    package init(deletedCount: Int) { self.deletedCount = deletedCount }
}

package import FoundationEssentials
import JSON

/// What somebody who listens wants to hear of (2026-07-28, subscriptions).
struct SubscriptionRequest: Hashable, Sendable {
    let id: RPCID
    let tools: Bool
    let prompts: Bool
    let resources: Bool
    let addresses: Set<String>

    /// As much of what was asked for as the server has.
    init(_ params: JSONObject, id: RPCID, _ server: ServerDescription) throws(RPCError) {
        guard let filter = params["notifications"]?.object else {
            throw .invalidParams("subscriptions/listen must say which notifications, an object")
        }
        let uris = (filter["resourceSubscriptions"]?.array ?? []).compactMap(\.string)
        guard uris.count <= SessionStore.subscriptionLimit else {
            throw .invalidParams("\(SessionStore.subscriptionLimit) resources are the most that one may listen to")
        }
        guard uris.allSatisfy({ $0.utf8.count <= PersistedSubscriptions.lengthLimit }) else { throw .longAddress }
        self.id = id
        tools = filter["toolsListChanged"] == true && server.has("tools", "listChanged")
        prompts = filter["promptsListChanged"] == true && server.has("prompts", "listChanged")
        resources = filter["resourcesListChanged"] == true && server.has("resources", "listChanged")
        addresses = server.has("resources", "subscribe") ? Set(uris) : []
    }

    /// The first message: what of it was taken.
    var acknowledgement: JSON {
        var taken: JSONObject = [:]
        if tools { taken["toolsListChanged"] = true }
        if prompts { taken["promptsListChanged"] = true }
        if resources { taken["resourcesListChanged"] = true }
        if !addresses.isEmpty { taken["resourceSubscriptions"] = .array(addresses.sorted().map(JSON.string)) }
        return message("notifications/subscriptions/acknowledged", ["notifications": .object(taken)])
    }

    /// The message about a change; nil where nobody asked for it.
    func message(_ change: ServerChange) -> JSON? {
        switch change {
        case .tools where tools, .prompts where prompts, .resources where resources: message(change.method, [:])
        case .resource(let uri) where addresses.contains(uri): message(change.method, ["uri": .string(uri)])
        default: nil
        }
    }

    /// The answer: it comes when the broker ends the stream.
    var end: JSON {
        let result: JSONObject = ["resultType": "complete", "_meta": .object([RequestMeta.subscriptionName: id.json])]
        return RPCMessage.response(id: id, .success(.object(result))).json
    }

    private func message(_ method: String, _ params: JSONObject) -> JSON {
        var params = params
        params["_meta"] = .object([RequestMeta.subscriptionName: id.json])
        return RPCMessage.notification(RPCNotification(method: method, params: params)).json
    }
}

extension RPCError {
    /// A subscription to a resource whose address is longer than any that is kept.
    static let longAddress = invalidParams(
        "the uri of a resource to subscribe to has at most \(PersistedSubscriptions.lengthLimit) bytes"
    )
}

extension ServerChange {
    /// The notification that tells of it.
    var method: String {
        switch self {
        case .tools: "notifications/tools/list_changed"
        case .prompts: "notifications/prompts/list_changed"
        case .resources: "notifications/resources/list_changed"
        case .resource: "notifications/resources/updated"
        }
    }
}

/// What one client of the handshake's eras wants to hear of, as it outlives the broker.
package struct PersistedSubscriptions: Codable, Hashable, Sendable {
    /// The session's id, and whose it is: of another holder it is nothing.
    package let session: String
    package let holder: String
    /// Addresses of resources.
    package let addresses: [String]
    /// When the client was last here.
    package let lastUsed: Date

    /// How long a client is waited for that does not come back; how much is kept for how many.
    static let lifetime: TimeInterval = 30 * 24 * 3_600
    static let sessionLimit = 256
    static let addressLimit = 4_096
    /// In bytes of UTF-8, each.
    static let lengthLimit = 1_024

    /// Those that are worth keeping, the last used first.
    static func selection(of all: [PersistedSubscriptions], at now: Date) -> [PersistedSubscriptions] {
        var count = 0
        return all.filter { !$0.addresses.isEmpty && now.timeIntervalSince($0.lastUsed) < lifetime }
            .sorted { $0.lastUsed > $1.lastUsed }
            .prefix(sessionLimit)
            .prefix { kept in
                count += kept.addresses.count
                return count <= addressLimit
            }
    }
}

import Apps
package import FoundationEssentials
import Model

/// The parameters of `subscriptions/listen` (MCP 2026-07-28, subscriptions).
struct SubscriptionRequest: Hashable, Sendable {
    let id: RPCID
    let tools: Bool
    let prompts: Bool
    let resources: Bool
    let resourceURIs: Set<String>

    /// Keeps those of the requested subscriptions that the handler supports.
    init(_ params: JSONObject, id: RPCID, _ handler: HandlerDescription) throws(RPCError) {
        guard let filter = params["notifications"]?.object else {
            throw .invalidParams("the parameter notifications of subscriptions/listen must be an object")
        }
        let uris = (filter["resourceSubscriptions"]?.array ?? []).compactMap(\.string)
        guard uris.count <= SessionStore.subscriptionLimit else {
            throw .invalidParams("a client can subscribe to at most \(SessionStore.subscriptionLimit) resources")
        }
        guard uris.allSatisfy({ $0.utf8.count <= PersistedSubscriptions.lengthLimit }) else { throw .uriTooLong }
        self.id = id
        tools = filter["toolsListChanged"] == true && handler.has("tools", "listChanged")
        prompts = filter["promptsListChanged"] == true && handler.has("prompts", "listChanged")
        resources = filter["resourcesListChanged"] == true && handler.has("resources", "listChanged")
        resourceURIs = handler.has("resources", "subscribe") ? Set(uris) : []
    }

    /// The first message, which lists the accepted subscriptions.
    var acknowledgement: JSON {
        var accepted: JSONObject = [:]
        if tools { accepted["toolsListChanged"] = true }
        if prompts { accepted["promptsListChanged"] = true }
        if resources { accepted["resourcesListChanged"] = true }
        if !resourceURIs.isEmpty { accepted["resourceSubscriptions"] = .array(resourceURIs.sorted().map(JSON.string)) }
        return message("notifications/subscriptions/acknowledged", ["notifications": .object(accepted)])
    }

    /// Returns the message for a change; nil if the client did not subscribe to that change.
    func message(for change: ServerChange) -> JSON? {
        switch change {
        case .tools where tools, .prompts where prompts, .resources where resources: message(change.method, [:])
        case .resource(let uri) where resourceURIs.contains(uri): message(change.method, ["uri": .string(uri)])
        default: nil
        }
    }

    /// The response to the request, sent when the broker ends the stream.
    var end: JSON {
        let result: JSONObject = ["resultType": "complete", "_meta": .object([RequestMeta.subscriptionIDKey: id.json])]
        return RPCMessage.response(id: id, .success(.object(result))).json
    }

    private func message(_ method: String, _ params: JSONObject) -> JSON {
        var params = params
        params["_meta"] = .object([RequestMeta.subscriptionIDKey: id.json])
        return RPCMessage.notification(RPCNotification(method: method, params: params)).json
    }
}

extension RPCError {
    /// The URI of a subscribed resource exceeds the length limit.
    static let uriTooLong = invalidParams(
        "the uri of a resource to subscribe to has at most \(PersistedSubscriptions.lengthLimit) bytes"
    )
}

extension ServerChange {
    /// The method of the notification.
    var method: String {
        switch self {
        case .tools: "notifications/tools/list_changed"
        case .prompts: "notifications/prompts/list_changed"
        case .resources: "notifications/resources/list_changed"
        case .resource: "notifications/resources/updated"
        }
    }
}

/// The subscriptions of one session, as saved across restarts of the broker.
package struct PersistedSubscriptions: Codable, Hashable, Sendable {
    /// The session's ID and its holder. The ID is not valid for another holder.
    package let session: String
    package let holder: String
    /// The URIs of the resources.
    package let addresses: [String]
    /// The time of the client's last request.
    package let lastUsedAt: Date

    /// The subscriptions of a client that does not return are deleted after 30 days. At most 256 sessions and 4,096
    /// URIs are saved.
    static let lifetime: TimeInterval = 30 * 24 * 3_600
    static let sessionLimit = 256
    static let addressLimit = 4_096
    /// The maximum length of a URI in bytes of UTF-8.
    static let lengthLimit = 1_024

    /// Returns the subscriptions to save, the last used first.
    static func selection(of all: [PersistedSubscriptions], at now: Date) -> [PersistedSubscriptions] {
        var count = 0
        return all.filter { !$0.addresses.isEmpty && now.timeIntervalSince($0.lastUsedAt) < lifetime }
            .sorted { $0.lastUsedAt > $1.lastUsedAt }
            .prefix(sessionLimit)
            .prefix { saved in
                count += saved.addresses.count
                return count <= addressLimit
            }
    }
}

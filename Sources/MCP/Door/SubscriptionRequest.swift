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

package import Model
import NIOHTTP1

/// The broker, its endpoints, and its phones.
extension PatchbayClient {
    package func status() async throws -> BrokerStatus {
        try await answer(to: OutgoingRequest(method: .GET, path: ["status"]))
    }

    /// The list as it stands, or the next one after a revision.
    ///
    /// - Parameters:
    ///   - state: Only endpoints in this state.
    ///   - app: Only endpoints of this app.
    ///   - revision: Answer only when the list is newer than this.
    ///   - wait: How many seconds the broker may wait for that.
    /// - Returns: The list, with the same revision as asked for when nothing changed while the broker waited.
    /// - Throws: `ClientError`.
    package func endpoints(
        state: Endpoint.State? = nil,
        app: String? = nil,
        since revision: UInt64? = nil,
        wait: Int? = nil
    ) async throws -> EndpointList {
        var call = OutgoingRequest(method: .GET, path: ["endpoints"])
        if let revision { call.query.append(("since", "\(revision)")) }
        if let wait { call.query.append(("wait", "\(wait)")) }
        if let state { call.query.append(("state", state.rawValue)) }
        if let app { call.query.append(("app", app)) }
        return try await answer(to: call, extraPatience: .seconds(wait ?? 0))
    }

    package func endpoint(_ id: EndpointID) async throws -> Endpoint {
        try await answer(to: OutgoingRequest(method: .GET, path: ["endpoints", id.text]))
    }

    /// Lists an endpoint that nothing announces.
    package func add(_ endpoint: StaticEndpoint) async throws -> Endpoint {
        try await answer(to: OutgoingRequest(method: .POST, path: ["endpoints"], body: body(endpoint)))
    }

    /// Strikes an endpoint off the list, with its id; it comes back as new if something still sees it.
    package func forget(_ id: EndpointID) async throws {
        try await perform(OutgoingRequest(method: .DELETE, path: ["endpoints", id.text]))
    }

    /// Asks an endpoint right now whether it is there. A silent one takes as long as the broker's own deadline.
    package func probe(_ id: EndpointID) async throws -> Endpoint {
        let call = OutgoingRequest(method: .POST, path: ["endpoints", id.text, "probe"])
        return try await answer(to: call, extraPatience: .seconds(20))
    }

    package func devices() async throws -> DeviceList {
        try await answer(to: OutgoingRequest(method: .GET, path: ["devices"]))
    }
}

/// Which endpoints a person said yes to, and their secrets.
extension PatchbayClient {
    package func approvals() async throws -> ApprovalList {
        try await answer(to: OutgoingRequest(method: .GET, path: ["approvals"]))
    }

    /// Approves one network address of an endpoint.
    package func approve(_ id: EndpointID, _ spec: ApprovalSpec) async throws -> Endpoint {
        try await answer(
            to: OutgoingRequest(method: .POST, path: ["endpoints", id.text, "approve"], body: try body(spec))
        )
    }

    /// Revokes the approval of an endpoint, and forgets its secret.
    package func withdrawApproval(of id: EndpointID) async throws {
        try await perform(OutgoingRequest(method: .DELETE, path: ["endpoints", id.text, "approve"]))
    }

    /// Gives the broker an endpoint's secret for this launch of the app, to keep sealed and to present.
    ///
    /// An app that says on which port it listens may be there before the broker knows.
    package func setSecret(_ secret: String, of id: EndpointID, on port: UInt16? = nil) async throws {
        let spec = try body(EndpointSecretSpec(secret: secret, port: port))
        try await perform(OutgoingRequest(method: .PUT, path: ["endpoints", id.text, "secret"], body: spec))
    }

    /// Says whether there was one.
    package func forgetSecret(of id: EndpointID) async throws -> Bool {
        let call = OutgoingRequest(method: .DELETE, path: ["endpoints", id.text, "secret"])
        return try await answer(to: call, as: DeleteResponse.self).removed > 0
    }
}

/// Bonjour services that the broker publishes for somebody.
extension PatchbayClient {
    package func advertisements() async throws -> AdvertisementList {
        try await answer(to: OutgoingRequest(method: .GET, path: ["advertisements"]))
    }

    /// Publishes a service until it is withdrawn.
    package func advertise(_ spec: AdvertisementSpec) async throws -> Advertisement {
        try await answer(to: OutgoingRequest(method: .POST, path: ["advertisements"], body: body(spec)))
    }

    /// Puts another TXT record in the place of the published one.
    package func update(_ id: String, txt: TXTRecord) async throws -> Advertisement {
        let change = try body(AdvertisementUpdate(txt: txt))
        return try await answer(to: OutgoingRequest(method: .PATCH, path: ["advertisements", id], body: change))
    }

    package func withdraw(_ id: String) async throws {
        try await perform(OutgoingRequest(method: .DELETE, path: ["advertisements", id]))
    }

    /// Publishes a service for as long as this call stands, and tells each change of its name and state.
    ///
    /// Returns when the broker ends the stream.
    package func holdAdvertisement(
        _ spec: AdvertisementSpec,
        _ handle: (Advertisement) async throws -> Void
    ) async throws {
        let call = OutgoingRequest(method: .POST, path: ["advertisements", "held"], body: try body(spec))
        try await follow(call) { event in
            guard event.name == "advertisement" else { return }
            try await handle(decode(Advertisement.self, from: event.data.utf8, what: "an advertisement event"))
        }
    }
}

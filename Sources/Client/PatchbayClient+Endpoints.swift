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

package import Model
import NIOHTTP1

/// Broker status, endpoints and devices.
extension PatchbayClient {
    package func status() async throws -> BrokerStatus {
        try await response(to: OutgoingRequest(method: .GET, path: ["status"]))
    }

    /// Returns the current list, or waits for a newer one.
    ///
    /// - Parameters:
    ///   - state: Return only endpoints in this state.
    ///   - app: Return only endpoints of this app.
    ///   - revision: Wait until the list is newer than this revision.
    ///   - wait: Maximum time in seconds that the broker waits.
    /// - Returns: The list. Has the requested revision when nothing changed.
    /// - Throws: `ClientError`.
    package func endpoints(
        state: Endpoint.State? = nil,
        app: String? = nil,
        since revision: UInt64? = nil,
        wait: Int? = nil
    ) async throws -> EndpointList {
        var request = OutgoingRequest(method: .GET, path: ["endpoints"])
        if let revision { request.query.append(("since", "\(revision)")) }
        if let wait { request.query.append(("waitSeconds", "\(wait)")) }
        if let state { request.query.append(("state", state.rawValue)) }
        if let app { request.query.append(("app", app)) }
        return try await response(to: request, extraTimeout: .seconds(wait ?? 0))
    }

    package func endpoint(_ id: EndpointID) async throws -> Endpoint {
        try await response(to: OutgoingRequest(method: .GET, path: ["endpoints", id.text]))
    }

    /// Returns the URLs of a Dart VM service. They contain the endpoint's secret.
    package func vmService(of id: EndpointID) async throws -> DartVMService {
        try await response(to: OutgoingRequest(method: .GET, path: ["endpoints", id.text, "vm-service"]))
    }

    /// Adds a static endpoint.
    package func add(_ endpoint: StaticEndpoint) async throws -> Endpoint {
        try await response(to: OutgoingRequest(method: .POST, path: ["endpoints"], body: body(endpoint)))
    }

    /// Removes an endpoint and releases its ID. An endpoint that is still discovered returns as a new one.
    package func removeEndpoint(_ id: EndpointID) async throws {
        try await perform(OutgoingRequest(method: .DELETE, path: ["endpoints", id.text]))
    }

    /// Probes an endpoint now. An unreachable endpoint takes until the broker's probe timeout.
    package func probe(_ id: EndpointID) async throws -> Endpoint {
        let request = OutgoingRequest(method: .POST, path: ["endpoints", id.text, "probe"])
        return try await response(to: request, extraTimeout: .seconds(20))
    }

    package func configuration() async throws -> [ConfigurationEntry] { try await items(at: "configuration") }

    package func devices() async throws -> [Device] { try await items(at: "devices") }
}

/// The profiles of plain HTTP debug servers.
extension PatchbayClient {
    package func profiles() async throws -> [ProfileSummary] { try await items(at: "profiles") }

    /// Checks a profile file, and tries it on its target. A slow server takes up to a minute.
    package func check(_ spec: ProfileCheckSpec) async throws -> ProfileCheck {
        let request = OutgoingRequest(method: .POST, path: ["profiles", "check"], body: try body(spec))
        return try await response(to: request, extraTimeout: .seconds(120))
    }
}

/// Approvals and endpoint secrets.
extension PatchbayClient {
    package func approvals() async throws -> [Approval] { try await items(at: "approvals") }

    /// Approves one network address of an endpoint.
    package func approve(_ id: EndpointID, _ spec: ApprovalSpec) async throws -> Endpoint {
        try await response(
            to: OutgoingRequest(method: .PUT, path: ["endpoints", id.text, "approval"], body: try body(spec))
        )
    }

    /// Revokes the approval of an endpoint and deletes its secret.
    package func revokeApproval(of id: EndpointID) async throws {
        try await perform(OutgoingRequest(method: .DELETE, path: ["endpoints", id.text, "approval"]))
    }

    /// Gives the broker an endpoint's secret for the current launch of the app. The broker stores it sealed and sends
    /// it to the app.
    ///
    /// `port` is the port that the app reports, because the broker may not have discovered that launch yet.
    package func setSecret(_ secret: String, of id: EndpointID, on port: UInt16? = nil) async throws {
        let spec = try body(EndpointSecretSpec(secret: secret, port: port))
        try await perform(OutgoingRequest(method: .PUT, path: ["endpoints", id.text, "secret"], body: spec))
    }

    /// Deletes an endpoint's secret. Returns false when there was none.
    package func deleteSecret(of id: EndpointID) async throws -> Bool {
        let request = OutgoingRequest(method: .DELETE, path: ["endpoints", id.text, "secret"])
        return try await response(to: request, as: DeleteResponse.self).deletedCount > 0
    }
}

/// Bonjour services that the broker publishes for clients.
extension PatchbayClient {
    package func advertisements() async throws -> [Advertisement] { try await items(at: "advertisements") }

    /// Publishes a service until its removal.
    package func advertise(_ spec: AdvertisementSpec) async throws -> Advertisement {
        try await response(to: OutgoingRequest(method: .POST, path: ["advertisements"], body: body(spec)))
    }

    /// Replaces the TXT record of a published service.
    package func updateAdvertisement(_ id: String, txt: TXTRecord) async throws -> Advertisement {
        let change = try body(AdvertisementUpdate(txt: txt))
        return try await response(to: OutgoingRequest(method: .PATCH, path: ["advertisements", id], body: change))
    }

    package func removeAdvertisement(_ id: String) async throws {
        try await perform(OutgoingRequest(method: .DELETE, path: ["advertisements", id]))
    }

    /// Publishes a service while this call runs, and passes each change of its name and state to `handle`.
    ///
    /// Returns when the broker ends the stream.
    package func publishEphemeralAdvertisement(
        _ spec: AdvertisementSpec,
        _ handle: (Advertisement) async throws -> Void
    ) async throws {
        let request = OutgoingRequest(method: .POST, path: ["advertisements", "ephemeral"], body: try body(spec))
        try await stream(request) { event in
            guard event.name == "advertisement" else { return }
            try await handle(decode(Advertisement.self, from: event.data, what: "an advertisement event"))
        }
    }
}

/// Exclusive use of endpoints and phones.
extension PatchbayClient {
    /// Returns the leases of the endpoints that the client may see.
    package func leases() async throws -> [Lease] { try await items(at: "leases") }

    /// Takes a lease, or renews the client's own lease.
    ///
    /// - Parameter spec: The endpoint, the length, and the time that the broker waits for another client.
    /// - Returns: The lease.
    /// - Throws: `ClientError`; the problem `leased` names the client that has the lease.
    package func takeLease(_ spec: LeaseSpec) async throws -> Lease {
        let request = OutgoingRequest(method: .POST, path: ["leases"], body: try body(spec))
        return try await response(to: request, extraTimeout: .seconds(spec.waitSeconds ?? 0))
    }

    /// Ends a lease. An owner may end the lease of any client.
    package func endLease(_ id: String) async throws {
        try await perform(OutgoingRequest(method: .DELETE, path: ["leases", id]))
    }
}

package import Model
import NIOHTTP1

/// The approvals and denials of endpoints.
package struct ApprovalClient: Sendable {
    let client: PatchbayClient

    package func list() async throws -> [Approval] { try await client.items(at: "approvals") }

    /// Approves one network address of an endpoint.
    package func approve(_ id: EndpointID, _ spec: ApprovalSpec) async throws -> Endpoint {
        try await client.response(
            to: OutgoingRequest(method: .PUT, path: ["endpoints", id.text, "approval"], body: try client.body(spec))
        )
    }

    package func denials() async throws -> [Denial] { try await client.items(at: "denials") }

    /// Denies network addresses of an endpoint.
    package func deny(_ id: EndpointID, _ spec: DenialSpec) async throws -> Endpoint {
        try await client.response(
            to: OutgoingRequest(method: .PUT, path: ["endpoints", id.text, "denial"], body: try client.body(spec))
        )
    }

    /// Revokes the approval of an endpoint and deletes its secret.
    package func revoke(of id: EndpointID) async throws {
        try await client.perform(OutgoingRequest(method: .DELETE, path: ["endpoints", id.text, "approval"]))
    }
}

/// The secrets of endpoints.
package struct SecretClient: Sendable {
    let client: PatchbayClient

    /// Gives the broker an endpoint's secret for the current launch of the app. The broker stores it sealed and sends
    /// it to the app.
    ///
    /// `port` is the port that the app reports, because the broker may not have discovered that launch yet.
    ///
    /// - Returns: The app's answer to the secret; nil from a broker that does not report it.
    @discardableResult
    package func set(_ secret: String, of id: EndpointID, on port: UInt16? = nil) async throws -> SecretTrial? {
        let spec = try client.body(EndpointSecretSpec(secret: secret, port: port))
        let request = OutgoingRequest(method: .PUT, path: ["endpoints", id.text, "secret"], body: spec)
        let headers = try await client.connection(idleTimeout: client.timeout).perform(request) { _ in }
        return headers.first(name: SecretTrial.header).flatMap(SecretTrial.init(rawValue:))
    }

    /// Deletes an endpoint's secret. Returns false when there was none.
    package func delete(of id: EndpointID) async throws -> Bool {
        let request = OutgoingRequest(method: .DELETE, path: ["endpoints", id.text, "secret"])
        return try await client.response(to: request, as: DeleteResponse.self).deletedCount > 0
    }
}

package import Model
import NIOHTTP1

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

import AccessControl
import HummingbirdCore
import Model
import Registry

/// `/v1/problems`: what needs a person, as `patchbay status` and `patchbay doctor` tell it.
enum ProblemRoutes {
    @Sendable static func list(_ request: APIRequest) async throws -> APIResponse {
        try .json(ListResponse(await visible(to: request)))
    }

    /// Returns the problems that concern the client: all for an owner, else those of the parts and endpoints that its grant
    /// shows.
    static func visible(to request: APIRequest) async -> [BrokerProblem] {
        let status = await StatusRoutes.status(request)
        let endpoints = request.visible(await request.services.endpoints.endpoints)
        guard request.principal.isOwner else { return status.problems + endpoints.approvalProblems }
        let requests = request.services.accessStore.requests
        var problems = status.problems + endpoints.approvalProblems
        problems += await requests.pending.map(\.problem)
        let devices = await request.services.devices.devices()
        problems += devices.compactMap(\.problem) + devices.compactMap(\.pairingNote)
        if await requests.areClosed {
            problems.append(
                BrokerProblem(
                    "requests-closed",
                    .requestsClosed,
                    subject: BrokerPart.access.rawValue,
                    text: "too many wrong codes were entered, so access requests are closed",
                    command: "patchbay requests unlock"
                )
            )
        }
        return problems
    }
}

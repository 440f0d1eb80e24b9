import AccessControl
import FoundationEssentials
import Hummingbird
import Model

/// `/v1/requests`: a process on this machine asks, a person answers.
enum AccessRequestRoutes {
    @Sendable static func ask(_ call: APIRequest) async throws -> Response {
        let spec = try await call.body(AccessRequestSpec.self)
        guard let peer = await PeerCredentials(of: call.channel) else {
            throw Problem(.forbidden, "this is asked through the unix socket only")
        }
        var terms = AccessTerms(spec.permissions, name: spec.name, isBearer: spec.isBearer ?? false)
        if let lifetime = spec.lifetime {
            terms = AccessTerms(
                terms.permissions,
                name: terms.name,
                isBearer: terms.isBearer,
                lifetime: lifetime
            )
        }
        let (request, handle) = try await call.broker.pairing.request(
            terms,
            by: peer.caller,
            isRunning: await peer.liveness(on: call.channel)
        )
        return try call.answer(
            AccessRequestCreated(request: request, handle: handle.reveal(), interval: AccessStore.pollInterval),
            status: .created
        )
    }

    @Sendable static func list(_ call: APIRequest) async throws -> Response {
        try call.answer(AccessRequestList(requests: await call.broker.pairing.requests))
    }

    @Sendable static func poll(_ call: APIRequest) async throws -> Response {
        let spec = try await call.body(AccessRequestPoll.self)
        guard let handle = try? Token(spec.handle) else {
            throw try await call.broker.pairing.refuseGarbage(from: call.visitor.origin)
        }
        let state = try await call.broker.pairing.poll(
            handle,
            client: Data(spec.client.utf8),
            name: spec.name ?? SanitizedText("agent"),
            from: call.visitor.origin
        )
        let answer =
            switch state {
            case .waiting(let seconds): AccessRequestStatus(state: .waiting, interval: seconds)
            case .denied: AccessRequestStatus(state: .denied)
            case .granted(let grant, let token):
                AccessRequestStatus(state: .granted, granted: IssuedGrant(grant: grant, token: token.reveal()))
            }
        return try call.answer(answer)
    }

    @Sendable static func approve(_ call: APIRequest) async throws -> Response {
        try call.answer(
            try await call.broker.pairing.approve(
                try call.parameter("code"),
                by: call.visitor.caller,
                from: call.visitor.origin
            )
        )
    }

    @Sendable static func deny(_ call: APIRequest) async throws -> Response {
        try call.answer(
            try await call.broker.pairing.deny(
                try call.parameter("code"),
                by: call.visitor.caller,
                from: call.visitor.origin
            )
        )
    }

    @Sendable static func reopen(_ call: APIRequest) async throws -> Response {
        try await call.broker.pairing.reopenRequests()
        return call.nothing
    }
}

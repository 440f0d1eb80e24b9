import FoundationEssentials
import Hummingbird
import Model
import Pairing

/// `/v1/requests`: a process on this machine asks, a person answers.
enum AccessRequestRoutes {
    @Sendable static func ask(_ call: Call) async throws -> Response {
        let spec = try await call.body(AccessRequestSpec.self)
        guard let peer = await Peer(of: call.channel) else {
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
            AccessRequestIssued(request: request, handle: handle.reveal(), interval: PairingStore.pollInterval),
            status: .created
        )
    }

    @Sendable static func list(_ call: Call) async throws -> Response {
        try call.answer(AccessRequestList(requests: await call.broker.pairing.requests))
    }

    @Sendable static func poll(_ call: Call) async throws -> Response {
        let spec = try await call.body(AccessPoll.self)
        guard let handle = try? Token(spec.handle) else {
            throw try await call.broker.pairing.refuseGarbage(from: call.visitor.origin)
        }
        let state = try await call.broker.pairing.poll(
            handle,
            client: Data(spec.client.utf8),
            name: spec.name ?? Untrusted("agent"),
            from: call.visitor.origin
        )
        let answer =
            switch state {
            case .waiting(let seconds): AccessAnswer(state: .waiting, interval: seconds)
            case .denied: AccessAnswer(state: .denied)
            case .granted(let grant, let token):
                AccessAnswer(state: .granted, granted: GrantIssued(grant: grant, token: token.reveal()))
            }
        return try call.answer(answer)
    }

    @Sendable static func approve(_ call: Call) async throws -> Response {
        try call.answer(
            try await call.broker.pairing.approve(
                try call.parameter("code"),
                by: call.visitor.caller,
                from: call.visitor.origin
            )
        )
    }

    @Sendable static func deny(_ call: Call) async throws -> Response {
        try call.answer(
            try await call.broker.pairing.deny(
                try call.parameter("code"),
                by: call.visitor.caller,
                from: call.visitor.origin
            )
        )
    }

    @Sendable static func reopen(_ call: Call) async throws -> Response {
        try await call.broker.pairing.reopenRequests()
        return call.nothing
    }
}

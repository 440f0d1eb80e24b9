package import AccessControl
package import Model
import Synchronization
import SystemIO

/// What somebody's yes and an app's secret allow, and the log of what is done with them.
package protocol EndpointAuthorizer: Sendable {
    /// The ways to an endpoint that may be taken for this caller now.
    func clearance(of endpoint: Endpoint, for caller: AgentCaller) async -> EndpointAccess

    /// The state of everybody's permissions: ask for it before `clearance`, and hand it to `deliver`.
    var generation: UInt64 { get }

    /// Whether the caller's grant counts at this moment; an owner has none, and counts always.
    func isLive(_ caller: AgentCaller) -> Bool

    /// Runs a write that returns at once, if no permission has ended or changed since that generation.
    ///
    /// - Returns: Nil when the write was not run.
    /// - Throws: What the write throws.
    func deliver<Value: Sendable, Failure: Error>(
        for caller: AgentCaller,
        since generation: UInt64,
        _ write: () throws(Failure) -> Value
    ) throws(Failure) -> Value?

    /// Registers something that ends with the caller's grant; nil for a caller without a grant.
    ///
    /// - Throws: When the grant has ended.
    func open(for caller: AgentCaller, cut: @escaping @Sendable () -> Void) throws -> GrantSession?

    /// It has ended by itself.
    func close(_ use: GrantSession)

    /// Notes whether an app took the secret that it was shown.
    func noteSecret(of endpoint: Endpoint, isTaken: Bool) async

    /// Writes a call into the audit log.
    func note(_ use: EndpointCallEvent, by caller: AgentCaller) async

    /// The endpoints whose approval or secret changes from now on.
    func changes() async -> AsyncStream<EndpointID>
}

/// Trust as pairing keeps it.
package struct PairingTrust: EndpointAuthorizer {
    private let pairing: AccessStore

    package init(_ pairing: AccessStore) { self.pairing = pairing }

    package func clearance(of endpoint: Endpoint, for caller: AgentCaller) async -> EndpointAccess {
        let clearance = pairing.clearance(of: endpoint)
        return caller.may(.secretUse, on: endpoint) ? clearance : clearance.withoutSecrets
    }

    package var generation: UInt64 { pairing.generation }

    package func isLive(_ caller: AgentCaller) -> Bool { caller.grant.map(pairing.isLive) ?? true }

    package func deliver<Value: Sendable, Failure: Error>(
        for caller: AgentCaller,
        since generation: UInt64,
        _ write: () throws(Failure) -> Value
    ) throws(Failure) -> Value? {
        try pairing.deliver(under: caller.grant, since: generation, write)
    }

    package func open(for caller: AgentCaller, cut: @escaping @Sendable () -> Void) throws -> GrantSession? {
        try caller.grant.map { try pairing.open(under: $0) { cut() } }
    }

    package func close(_ use: GrantSession) { pairing.close(use) }

    package func noteSecret(of endpoint: Endpoint, isTaken: Bool) async {
        pairing.noteSecret(of: endpoint.id, isTaken: isTaken)
        guard pairing.trust(of: endpoint.id).secret.contains(where: \.isForUnseen) else { return }
        // What cannot be saved stays as it is, and is settled by the next call.
        try? await pairing.settleSecret(of: endpoint, isTaken: isTaken)
    }

    package func note(_ use: EndpointCallEvent, by caller: AgentCaller) async {
        pairing.note(use, by: caller.caller, from: caller.origin)
    }

    package func changes() async -> AsyncStream<EndpointID> { await pairing.trustChanges() }
}

/// How far endpoints are trusted, and their own tokens.
package protocol AgentTrust: Sendable {
    /// The same endpoints, each with how far it is trusted where it is now.
    func judged(_ endpoints: [Endpoint]) async -> [Endpoint]
    /// Those of which the broker has a token for this launch.
    func held(of endpoints: [Endpoint]) async -> Set<EndpointID>
    /// Keeps an app's own token, which may be for a launch that the broker has not seen yet, at a port that is known or not.
    func keep(
        _ secret: EndpointSecret,
        of endpoint: Endpoint,
        on port: UInt16?,
        isForUnseen: Bool,
        for caller: AgentCaller
    ) async throws
}

extension AccessStore: AgentTrust {
    package func judged(_ endpoints: [Endpoint]) async -> [Endpoint] {
        endpoints.map { endpoint in
            var endpoint = endpoint
            let approval = approval(of: endpoint.id)
            for index in endpoint.routes.indices {
                endpoint.routes[index].approval =
                    ApprovalPolicy.verdict(on: endpoint.routes[index], approval).approval
            }
            endpoint.approval = ApprovalPolicy.approval(of: endpoint, approval)
            return endpoint
        }
    }

    package func held(of endpoints: [Endpoint]) async -> Set<EndpointID> {
        Set(endpoints.filter(holdsSecret).map(\.id))
    }

    package func keep(
        _ secret: EndpointSecret,
        of endpoint: Endpoint,
        on port: UInt16?,
        isForUnseen: Bool,
        for caller: AgentCaller
    ) async throws {
        try setSecret(secret, of: endpoint, on: port, isForUnseen: isForUnseen, by: caller.caller, from: caller.origin)
    }
}

/// Finding out whether an app wants a secret, and trying one before it is kept.
extension AppProxy {
    private static let tryingLimit = Duration.seconds(3)

    package func takes(_ secret: EndpointSecret, at endpoint: Endpoint, for caller: AgentCaller) async -> Bool? {
        await lets(in: caller, at: endpoint) { $0.map { AuthorizedRoute($0.route, secret: secret) } }
    }

    package func isOpen(_ endpoint: Endpoint, for caller: AgentCaller) async -> Bool? {
        if wantsSecret(endpoint) { return false }
        let isOpen = await lets(in: caller, at: endpoint) { $0 }
        if isOpen == false { noteNeed(of: endpoint.id, of: endpoint) }
        return isOpen
    }

    package func wantsSecret(_ endpoint: Endpoint) -> Bool {
        guard let wanting = entries.withLock({ $0[endpoint.id]?.wanting }) else { return false }
        return wanting == endpoint.launch
    }

    /// Notes the launch that wants a token; nil is none any more.
    func noteNeed(of id: EndpointID, of endpoint: Endpoint?) {
        entries.withLock { $0[id]?.wanting = endpoint?.launch }
    }

    /// Whether the app lets a caller in by these passages; nil where it cannot be asked.
    private func lets(
        in caller: AgentCaller,
        at endpoint: Endpoint,
        by passages: ([AuthorizedRoute]) -> [AuthorizedRoute]
    ) async -> Bool? {
        guard let (_, clearance) = try? await admit(caller, to: endpoint) else { return nil }
        let passages = passages(clearance.passages)
        // Not the line that is there: it knows this launch already, and would not ask again.
        let line = makeLine(to: endpoint.id)
        do {
            let met = try await withDeadline(Self.tryingLimit, clock: clock) {
                try await line.meet(endpoint, by: passages)
            }
            return met.map { _ in true }
        } catch Trouble.wantsSecret {
            return false
        } catch {
            return nil
        }
    }
}

extension Endpoint {
    /// The launch that its first route leads to.
    var launch: UpstreamSession.Launch? { routes.first.map { UpstreamSession.Launch(boot: boot, port: $0.port) } }
}

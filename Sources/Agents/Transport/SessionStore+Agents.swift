import AccessControl
import Apps
package import Model

/// The agents of the sessions and of the requests without one.
extension SessionStore {
    /// A running call, for `end(_:_:)`.
    struct AgentCall: Sendable {
        fileprivate let agent: AgentTable.Key
        fileprivate let number: Int
        /// The program and its version, as it names itself; nil without a name.
        let program: SanitizedText?
    }

    /// The agents, those with the newest calls first.
    package func agents() -> [AgentSession] { agentTable.sessions(at: now()) }

    /// Begins a new session of an agent.
    func begin(_ session: Session, client: JSON?, of principal: Principal, at endpoint: EndpointID?) {
        markCurrent(session)
        let key = AgentTable.Key(id: session.id, holder: session.holder)
        agentTable.touch(key, client: AgentSession.Client(client), of: principal, at: endpoint, now: now())
    }

    /// Records a running request of an agent, so that the client can cancel it, and the beginning of its call of a tool.
    ///
    /// - Returns: The call; nil for a request that calls no tool.
    func begin(
        _ parsed: ParsedRequest,
        _ inFlight: InFlightRequest,
        of principal: Principal,
        at endpoint: EndpointID?
    ) -> AgentCall? {
        if let session = parsed.session { begin(inFlight, parsed.id, of: session) }
        let client = AgentSession.Client(parsed.meta.clientInfo)
        // A client of MCP 2026-07-28 names its program in each request.
        let id = parsed.session?.id ?? client.map { "\($0.name)/\($0.version?.text ?? "")" }
        guard let id else { return nil }
        let key = AgentTable.Key(id: id, holder: principal.holder)
        agentTable.touch(key, client: client, of: principal, at: endpoint, now: now())
        guard let tool = parsed.request.tool else { return nil }
        let arguments = endpoint == nil ? parsed.request.params["arguments"] : nil
        let called = tool == "endpoint_call" ? arguments?["tool"]?.string : nil
        let call = AgentSession.Call(
            tool: SanitizedText(called ?? tool),
            endpoint: endpoint ?? arguments?["endpoint"]?.string.flatMap { EndpointID($0) },
            startedAt: now()
        )
        let program = agentTable.client(of: key).map { client in
            SanitizedText(client.version.map { "\(client.name) \($0)" } ?? client.name.text, limit: 128)
        }
        return AgentCall(agent: key, number: agentTable.beginCall(call, of: key), program: program)
    }

    /// Records the end of a request and of its call.
    func end(_ parsed: ParsedRequest, _ call: AgentCall?) {
        if let session = parsed.session { end(request: parsed.id, of: session) }
        if let call { agentTable.endCall(call.number, of: call.agent) }
    }
}

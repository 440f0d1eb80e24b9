import Apps
import Model

extension ClientRequester {
    /// Creates the requester for a client with a session. It sends on the response streams of the client's requests.
    ///
    /// Returns nil if the client accepts no requests and has set no log level. Without a running request, sending
    /// fails, but the requester still identifies the client.
    init?(for parsed: ParsedRequest, in sessions: SessionStore, during inFlight: InFlightRequest?, hasLogLevel: Bool) {
        guard case .session(let version) = parsed.mode, let session = parsed.session,
            hasLogLevel || !parsed.capabilities.isEmpty
        else { return nil }
        self.init(
            key: session.id,
            protocolVersion: version,
            capabilities: parsed.capabilities,
            isAskedOnStreams: true
        ) { request in
            await sessions.ask(request, of: session) { message in
                request.isBound ? inFlight?.send(message) ?? false : await sessions.send(message, to: session)
            }
        }
    }
}

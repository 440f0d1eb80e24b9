import Model
import AccessControl
import SystemIO

/// Something that is done with an app while nobody waits for it.
enum BackgroundTask: Sendable {
    /// The app is told something that it does not answer.
    case tell(UpstreamSession, RPCMessage, [AuthorizedRoute])
    /// An app wants to know something of the caller whose request it works on.
    case ask(ClientRequestForwarder.Question, UpstreamSession, [AuthorizedRoute])
    /// The stream of an app is read on which it asks beside the requests.
    case attend(UpstreamSession, ServerInfo, [AuthorizedRoute], opened: Promise<Void>, until: Promise<Void>)
    /// Lines that are one caller's alone are given up when they have not been used for long.
    case retire
    /// A call goes on while its caller finds out what the app wants to know; an app is told that a session is over.
    case run(@Sendable () async -> Void)
    /// Streams that it kept open are closed when nobody has used them for a while.
    case tidy(UpstreamSession)
    /// Its tools are listed, as somebody wants to hear when they change.
    case list(EndpointID, for: AgentCaller)
    /// It is looked at what an app says has changed, or what may have changed with its launch.
    case refresh(EndpointID, ServerChange, after: Duration)
    /// Its changes are followed while somebody wants to hear of them.
    case listen(EndpointID, for: AgentCaller)
}

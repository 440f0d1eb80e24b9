import Model
import Pairing

/// Something that is done with an app while nobody waits for it.
enum Errand: Sendable {
    /// The app is told something that it does not answer.
    case tell(AppLine, RPCMessage, [Passage])
    /// Streams that it kept open are closed when nobody has used them for a while.
    case tidy(AppLine)
    /// Its tools are listed, as somebody wants to hear when they change.
    case list(EndpointID, for: AgentCaller)
    /// Its changes are followed while somebody wants to hear of them.
    case listen(EndpointID, for: AgentCaller)
}

import Logging
import Model
import Registry
import SystemIO

/// The dependencies that all types of the proxy to apps share.
final class ProxyContext: Sendable {
    let registry: EndpointRegistry
    let authorizer: any EndpointAuthorizer
    let cache: AppCache
    let timeouts: UpstreamTimeouts
    let clock: any Clock<Duration>
    let logger: Logger
    let tasks = BackgroundTasks()
    /// Notifies of changes of an endpoint's routes, state, approval or token.
    let stateNotifier = EndpointNotifier<Void>()
    /// Notifies of changes that apps announce and of changed lists.
    let changeNotifier = EndpointNotifier<ServerChange>()
    /// The reports of the sessions, which `ChangeMonitor` handles.
    let (sessionEvents, sessionEvent) = AsyncStream.makeStream(of: SessionEvent.self)

    init(
        registry: EndpointRegistry,
        authorizer: any EndpointAuthorizer,
        cache: AppCache,
        timeouts: UpstreamTimeouts,
        clock: any Clock<Duration>,
        logger: Logger
    ) {
        self.registry = registry
        self.authorizer = authorizer
        self.cache = cache
        self.timeouts = timeouts
        self.clock = clock
        self.logger = logger
    }
}

/// A report of a session with an app.
enum SessionEvent: Sendable {
    /// The app has announced a change.
    case change(ServerChange, EndpointID)
    /// A handshake over a shared session has succeeded, which may be with another launch.
    case connection(EndpointID)
}

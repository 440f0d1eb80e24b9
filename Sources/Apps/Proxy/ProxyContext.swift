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
    /// The history of calls; nil if it is turned off.
    let activity: ActivityLog?
    let tasks = BackgroundTasks()
    /// Notifies of changes of an endpoint's routes, state, approval or token.
    let stateNotifier = EndpointNotifier<Void>()
    /// Notifies of changes that apps announce and of changed lists.
    let changeNotifier = EndpointNotifier<ServerChange>()
    /// The reports of the sessions, which `ChangeMonitor` handles.
    let upstreamSessionEvents = UpstreamSessionEvents()

    init(
        registry: EndpointRegistry,
        authorizer: any EndpointAuthorizer,
        cache: AppCache,
        timeouts: UpstreamTimeouts,
        clock: any Clock<Duration>,
        logger: Logger,
        activity: ActivityLog?
    ) {
        self.registry = registry
        self.authorizer = authorizer
        self.cache = cache
        self.timeouts = timeouts
        self.clock = clock
        self.logger = logger
        self.activity = activity
    }

    /// Reports a change that an app announced.
    func report(_ change: ServerChange, of id: EndpointID) {
        // Clients that subscribed to the resource read it themselves. An app can name any number of resources.
        if case .resource = change { return changeNotifier.notify(id, change) }
        upstreamSessionEvents.send(.change(change, id))
    }
}

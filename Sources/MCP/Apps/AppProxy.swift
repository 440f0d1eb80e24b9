package import JSON
package import Logging
import Model
package import Registry
import ServiceLifecycle
package import SystemIO
import Synchronization

/// Where calls to apps come in, wait for an app that is away, and go out.
///
/// It has one line for each app (`UpstreamSession`), keeps on a shelf what the apps said when they were there (`AppCache`), and
/// follows registry and pairing, so that whoever waits for an app is woken when something changes about it.
package final class AppProxy: AppCaller, Service {
    /// What an app's line is called by, and when the app came.
    struct Entry: Sendable {
        let line: UpstreamSession
        /// `Endpoint.approvedApp`.
        var approvedApp: SanitizedText?
        var launch: UpstreamSession.Launch?
        /// When it was started, or came back, by `watch`; nil while nobody has seen it.
        var arrival: Duration?
        /// The launch that last answered that it wants a token.
        var wanting: UpstreamSession.Launch?
        /// When it was last asked what it is, for nothing but that.
        var lastMeeting: Duration?
        /// Its changes are being followed.
        var isFollowed = false
        /// Its tools have not been listed since it was launched.
        var isListDue = false
        var refreshes: [ServerChange: Refresh] = [:]
    }

    let registry: EndpointRegistry
    let trust: any EndpointAuthorizer
    let limits: UpstreamTimeouts
    let clock: any Clock<Duration>
    let logger: Logger
    let shelf: AppCache
    let watch: ElapsedTimer
    /// Rings when something changes about an endpoint: its place, its state, its approval, its secret.
    let bells = EndpointNotifier<Void>()
    /// What apps and their lists say has changed.
    let news = EndpointNotifier<ServerChange>()
    /// Fits a result to what the caller can take.
    let trim: @Sendable (JSONObject, Int, AgentCaller) async -> JSONObject
    let entries = Mutex<[EndpointID: Entry]>([:])
    /// Lines that are one caller's alone.
    let owns = Mutex(ClientSessionPool())
    /// Requests that wait in an app for what their callers answer.
    let interviews = Mutex(SuspendedRequestStore())
    let errands: AsyncStream<BackgroundTask>
    private let dialer: any Dialer
    private let probe: IdentityProbe
    private let out: AsyncStream<BackgroundTask>.Continuation

    /// How many errands wait for their turn; what comes on top of them is not worth a slow broker.
    private static let errandLimit = 1_024

    /// - Parameters:
    ///   - registry: Where apps are.
    ///   - dialer: How routes are reached.
    ///   - probe: Asks AppReveal servers who they are.
    ///   - trust: Who may reach what, with which secret.
    ///   - memory: Keeps what apps said between two runs.
    ///   - trim: Fits a result to the longest edge that its images may have, for a caller.
    ///   - limits: How long apps are waited for.
    ///   - clock: What every time limit is measured with.
    ///   - logger: Where the operator reads.
    package init(
        registry: EndpointRegistry,
        dialer: any Dialer,
        probe: IdentityProbe = .none,
        trust: any EndpointAuthorizer,
        memory: any AppCacheStorage,
        trim: @escaping @Sendable (JSONObject, Int, AgentCaller) async -> JSONObject,
        limits: UpstreamTimeouts = UpstreamTimeouts(),
        clock: any Clock<Duration> = PollerClock(),
        logger: Logger
    ) {
        self.registry = registry
        self.dialer = dialer
        self.probe = probe
        self.trust = trust
        self.trim = trim
        self.limits = limits
        self.clock = clock
        self.logger = logger
        shelf = AppCache(memory)
        watch = ElapsedTimer(clock)
        (errands, out) = AsyncStream.makeStream(
            of: BackgroundTask.self,
            bufferingPolicy: .bufferingOldest(Self.errandLimit)
        )
    }

    package func run() async throws {
        await cancelWhenGracefulShutdown { [self] in
            await withDiscardingTaskGroup { group in
                group.addTask { await self.followRegistry() }
                group.addTask { await self.followTrust() }
                group.addTask { await self.runErrands() }
                group.addTask { await self.shelf.run() }
            }
        }
        await shelf.save()
    }

    /// The line to an endpoint, made when it is first needed.
    func line(to endpoint: Endpoint) -> UpstreamSession {
        entries.withLock { entries in
            if let entry = entries[endpoint.id] { return entry.line }
            let entry = Entry(line: makeLine(to: endpoint.id), approvedApp: endpoint.approvedApp)
            entries[endpoint.id] = entry
            return entry.line
        }
    }

    func makeLine(to id: EndpointID, own: ClientSessionParameters? = nil) -> UpstreamSession {
        UpstreamSession(
            to: id,
            dialer: dialer,
            limits: limits.upstream,
            listening: .listening(for: limits.listening),
            clock: clock,
            send: { [out] in out.yield($0) },
            tell: { [weak self] change in self?.heed(change, from: id) },
            own: own,
            probe: probe,
            identified: { [registry] report in
                switch report {
                case .server(let name, let version): await registry.setServer(name, version: version, of: id)
                case .mismatch(let route, let found): await registry.setMismatch(found, on: route, of: id)
                }
            },
            met: { [weak self] met in
                // What everybody is told of an app is what everybody meets.
                guard let self, own == nil else { return }
                await shelf.update(id) { $0.note(met) }
                noteMeeting(with: id)
            }
        )
    }

    /// - Returns: False where too many are before it, so that it is not done.
    @discardableResult
    func send(_ errand: BackgroundTask) -> Bool {
        if case .enqueued = out.yield(errand) { true } else { false }
    }
}

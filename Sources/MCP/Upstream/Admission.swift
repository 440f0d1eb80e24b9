import AccessControl
import SystemIO

/// What one try to deliver a request may use, as it was looked up: routes, secrets, and time.
///
/// The permission can end at any moment: its grant is revoked or expires, or the approval of the app is withdrawn. So it is
/// checked again when the request leaves a queue, and in one step with the write that completes the request.
struct Admission: Sendable {
    let passages: [AuthorizedRoute]
    /// How long the whole try may take, the time in the queue included.
    let limit: Duration
    private let caller: AgentCaller
    private let trust: any EndpointAuthorizer
    private let generation: UInt64

    /// The generation is that from before the passages were looked up.
    init(
        _ passages: [AuthorizedRoute],
        of caller: AgentCaller,
        by trust: any EndpointAuthorizer,
        since generation: UInt64,
        limit: Duration
    ) {
        self.passages = passages
        self.limit = limit
        self.caller = caller
        self.trust = trust
        self.generation = generation
    }

    /// Whose turn is taken in a queue.
    var holder: String { caller.holder }

    /// Throws when what was looked up may not be true any more.
    func check() throws(Trouble) {
        guard trust.generation == generation, trust.isLive(caller) else { throw .outdated }
    }

    /// Runs a write that returns at once, unless the permission has ended or changed.
    func deliver<Value: Sendable, Failure: Error>(_ write: () throws(Failure) -> Value) throws(Failure) -> Value? {
        try trust.deliver(for: caller, since: generation, write)
    }

    /// Waits for a place in a queue, until the time is over or the caller's grant ends.
    ///
    /// - Throws: `Trouble.busy`, `CancellationError`; then the place was not taken.
    func wait(for turn: Promise<Void>, clock: any Clock<Duration>) async throws {
        // Once it is settled, whoever gives places away passes it over: that is done before the grant's end is told.
        let use: GrantSession?
        do { use = try trust.open(for: caller) { turn.settle(.failure(CancellationError())) } } catch {
            throw CancellationError()
        }
        defer { if let use { trust.close(use) } }
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { [limit] in
                try await clock.sleep(for: limit)
                turn.settle(.failure(Trouble.busy))
            }
            defer { group.cancelAll() }
            try await turn.value()
        }
    }
}

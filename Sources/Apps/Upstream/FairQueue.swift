import AccessControl
import SystemIO

/// Admits requests with a limit per holder. Waiting holders take turns, and the requests of one holder keep their
/// order.
///
/// A holder can use only a part of the permits, so a new holder does not wait for busy ones.
struct FairQueue<Waiting> {
    /// The limits: permits in total, permits per holder, and waiting requests per holder.
    let permits: Int
    let perHolderLimit: Int
    let queueLimit: Int

    private(set) var active: [String: Int] = [:]
    private var total = 0
    private var waiting: [String: [Waiting]] = [:]
    /// Holders with waiting requests; the next one is first.
    private var order: [String] = []

    init(permits: Int, perHolderLimit: Int, queueLimit: Int) {
        self.permits = permits
        self.perHolderLimit = perHolderLimit
        self.queueLimit = queueLimit
    }

    /// Returns whether the holder's queue is full.
    func isFull(for holder: String) -> Bool { waiting[holder, default: []].count >= queueLimit }

    /// Acquires a permit if the holder may have one. Cannot overtake a waiting request that could be admitted, because
    /// those are admitted as soon as a permit is free.
    mutating func acquire(_ holder: String) -> Bool {
        guard total < permits, active[holder, default: 0] < perHolderLimit else { return false }
        active[holder, default: 0] += 1
        total += 1
        return true
    }

    /// Adds a request to the holder's queue.
    mutating func enqueue(_ waiter: Waiting, for holder: String) {
        if waiting[holder] == nil { order.append(holder) }
        waiting[holder, default: []].append(waiter)
    }

    /// Releases a permit. Call `next` afterwards until it returns nil.
    mutating func release(_ holder: String) {
        total -= 1
        let left = active[holder, default: 1] - 1
        active[holder] = left == 0 ? nil : left
    }

    /// Admits the next waiting request; nil if no waiting holder may have a permit.
    mutating func next() -> (Waiting, holder: String)? {
        guard let index = order.firstIndex(where: { active[$0, default: 0] < perHolderLimit }), acquire(order[index])
        else {
            return nil
        }
        let holder = order.remove(at: index)
        var queue = waiting.removeValue(forKey: holder) ?? []
        let waiter = queue.removeFirst()
        if !queue.isEmpty {
            waiting[holder] = queue
            order.append(holder)
        }
        return (waiter, holder)
    }

    /// Removes waiting requests that were cancelled.
    mutating func remove(_ holder: String, where isRemoved: (Waiting) -> Bool) {
        guard var queue = waiting[holder] else { return }
        queue.removeAll(where: isRemoved)
        waiting[holder] = queue.isEmpty ? nil : queue
        if queue.isEmpty { order.removeAll { $0 == holder } }
    }
}

/// The routes, tokens and time that one delivery attempt may use, as they were looked up.
///
/// A permission can end at any moment: its grant is revoked or expires, or the app's approval is revoked. The
/// permission is therefore checked again after the queue. The last check is atomic with the write that completes the
/// request.
struct DeliveryAuthorization: Sendable {
    let routes: [AuthorizedRoute]
    /// The time limit of the attempt, including the time in the queue.
    let limit: Duration
    let principal: Principal
    private let authorizer: any EndpointAuthorizer
    private let generation: UInt64

    /// Creates an admission. The generation must be read before the routes are looked up.
    init(
        _ routes: [AuthorizedRoute],
        of principal: Principal,
        by authorizer: any EndpointAuthorizer,
        since generation: UInt64,
        limit: Duration
    ) {
        self.routes = routes
        self.limit = limit
        self.principal = principal
        self.authorizer = authorizer
        self.generation = generation
    }

    /// The identity for queue fairness.
    var holder: String { principal.holder }

    /// Throws if a permission may have changed since the lookup.
    func check() throws(AppError) {
        guard authorizer.generation == generation, authorizer.isLive(principal) else { throw .permissionChanged }
    }

    /// Runs a non-blocking write unless the permission has ended or changed.
    func deliver<Value: Sendable, Failure: Error>(_ write: () throws(Failure) -> Value) throws(Failure) -> Value? {
        try authorizer.deliver(for: principal, since: generation, write)
    }

    /// The permission for one message, which is checked with its last bytes.
    var permission: AppConnection.Permission { { write in deliver { write() } } }

    /// Waits for a turn in the queue, until the time limit or the end of the principal's grant.
    ///
    /// - Throws: `AppError.busy`, `CancellationError`; the turn was not taken.
    func wait(for turn: Promise<Void>, clock: any Clock<Duration>) async throws {
        // A completed turn is skipped by the queue. The revocation handler runs before the end of the grant is
        // published.
        let session: GrantSession?
        do { session = try authorizer.register(for: principal) { turn.complete(.failure(CancellationError())) } } catch
        {
            turn.complete(.failure(CancellationError()))
            // The queue may have granted the turn before. The caller then has it, and releases it after `check`.
            return try await turn.value()
        }
        defer { if let session { authorizer.unregister(session) } }
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { [limit] in
                try await clock.sleep(for: limit)
                turn.complete(.failure(AppError.busy))
            }
            defer { group.cancelAll() }
            try await turn.value()
        }
    }
}

import AccessControl
import SystemIO

/// Who may go in now, and who is next: of those who wait, one of each holder's in turn, and of one holder's in their order.
///
/// One holder has only a part of the places: whoever comes while others have all of theirs need not wait for any of them.
struct FairQueue<Waiting> {
    /// Of everybody together, of one holder, and of one holder's that wait.
    let places: Int
    let share: Int
    let queue: Int

    private(set) var inside: [String: Int] = [:]
    private var total = 0
    private var waiting: [String: [Waiting]] = [:]
    /// Holders of whom somebody waits, the next first.
    private var order: [String] = []

    init(places: Int, share: Int, queue: Int) {
        self.places = places
        self.share = share
        self.queue = queue
    }

    /// Whether nobody of this holder's can be put into the queue any more.
    func isFull(for holder: String) -> Bool { waiting[holder, default: []].count >= queue }

    /// Goes in, if there is room for this holder. Nobody who could waits meanwhile: they are let in as soon as there is room.
    mutating func enter(_ holder: String) -> Bool {
        guard total < places, inside[holder, default: 0] < share else { return false }
        inside[holder, default: 0] += 1
        total += 1
        return true
    }

    mutating func wait(_ one: Waiting, for holder: String) {
        if waiting[holder] == nil { order.append(holder) }
        waiting[holder, default: []].append(one)
    }

    /// Gives a place back; then `next` has to be asked until it says nil.
    mutating func leave(_ holder: String) {
        total -= 1
        let left = inside[holder, default: 1] - 1
        inside[holder] = left == 0 ? nil : left
    }

    /// Lets the next one in; nil when there is room for nobody who waits.
    mutating func next() -> (Waiting, holder: String)? {
        guard let place = order.firstIndex(where: { inside[$0, default: 0] < share }), enter(order[place]) else {
            return nil
        }
        let holder = order.remove(at: place)
        var queue = waiting.removeValue(forKey: holder) ?? []
        let one = queue.removeFirst()
        if !queue.isEmpty {
            waiting[holder] = queue
            order.append(holder)
        }
        return (one, holder)
    }

    /// Takes those out of the queue who do not want to go in any more.
    mutating func withdraw(_ holder: String, where isOut: (Waiting) -> Bool) {
        guard var queue = waiting[holder] else { return }
        queue.removeAll(where: isOut)
        waiting[holder] = queue.isEmpty ? nil : queue
        if queue.isEmpty { order.removeAll { $0 == holder } }
    }
}

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

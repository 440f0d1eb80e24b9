package import Model
package import SystemIO

/// Connects by plans on tasks: with retries, and to several routes at a time (RFC 8305).
extension Relay {
    /// The delay before the next route is tried too (RFC 8305, section 5).
    static let attemptDelay = Duration.milliseconds(250)

    private enum Attempt: Sendable {
        case connected(RelayTarget)
        case failed(Int, DialError)
        /// The attempt with this index has not ended within the delay.
        case slow(Int)
    }

    /// Connects by plans, the best first.
    ///
    /// A plan is tried when the one before it has failed, or after `attemptDelay` if that one uses the network.
    ///
    /// - Parameters:
    ///   - plans: The plans, of which there is at least one.
    ///   - failure: The failure of an attempt by the first plan that was made before.
    /// - Returns: The first stream that opens.
    /// - Throws: `DialError` with the reason of the best route; `CancellationError`.
    func connect(_ plans: [ConnectPlan], after failure: ConnectPlan.AttemptFailure? = nil) async throws -> RelayTarget {
        if plans.count == 1 { return try await connect(plans[0], after: failure) }
        return try await withThrowingTaskGroup(of: Attempt.self) { group in
            do {
                return try await race(plans, after: failure, in: &group)
            } catch {
                await Self.end(&group)
                throw error
            }
        }
    }

    /// Connects to a target whose last probes failed.
    ///
    /// - Throws: The error of the absence, if no route leads to a server in time; `CancellationError`.
    func connect(_ plans: [ConnectPlan], to absent: TargetAbsence) async throws -> RelayTarget {
        try await withThrowingTaskGroup(of: RelayTarget?.self) { group in
            group.addTask { [self] in try await connect(plans) }
            group.addTask {
                try await PollerClock().sleep(for: TargetAbsence.timeout)
                return nil
            }
            let first = await group.nextResult()
            group.cancelAll()
            if case .success(let target?) = first {
                await absent.returned()
                return target
            }
            while let late = await group.nextResult() {
                if case .success(let target?) = late { target.reject() }
            }
            try Task.checkCancellation()
            throw absent.failure
        }
    }

    private func race(
        _ plans: [ConnectPlan],
        after failure: ConnectPlan.AttemptFailure?,
        in group: inout ThrowingTaskGroup<Attempt, any Error>
    ) async throws -> RelayTarget {
        var failures: [(index: Int, error: DialError)] = []
        var started = 0
        while failures.count < plans.count {
            if started < plans.count {
                start(plans[started], started, after: started == 0 ? failure : nil, in: &group)
                started += 1
            }
            events: while let event = try await group.next() {
                switch event {
                case .connected(let target):
                    await Self.end(&group)
                    return target
                case .failed(let index, let error):
                    failures.append((index, error))
                    break events
                case .slow(let index) where index == started - 1: break events
                case .slow: continue
                }
            }
        }
        failures.sort { $0.index < $1.index }
        throw DialError(failures[0].error.reason, failures.map(\.error.description).joined(separator: "; then "))
    }

    private func start(
        _ plan: ConnectPlan,
        _ index: Int,
        after failure: ConnectPlan.AttemptFailure?,
        in group: inout ThrowingTaskGroup<Attempt, any Error>
    ) {
        group.addTask { [self] in
            do { return .connected(try await connect(plan, after: failure)) } catch let error as DialError {
                return .failed(index, error)
            }
        }
        guard plan.usesNetwork else { return }
        group.addTask {
            try await PollerClock().sleep(for: Self.attemptDelay)
            return .slow(index)
        }
    }

    /// Cancels the attempts and closes the streams that open nevertheless.
    private static func end(_ group: inout ThrowingTaskGroup<Attempt, any Error>) async {
        group.cancelAll()
        while let result = await group.nextResult() {
            if case .success(.connected(let target)) = result { target.reject() }
        }
    }

    /// Connects by a plan and by those that replace it after failures.
    private func connect(_ first: ConnectPlan, after known: ConnectPlan.AttemptFailure?) async throws -> RelayTarget {
        var (plan, failure, attempts) = (first, known, known == nil ? 0 : 1)
        while true {
            if let failure { plan = try await plan.recover(failure, attempts) }
            attempts += 1
            do { return try await open(plan) } catch let error as ConnectPlan.AttemptFailure { failure = error }
        }
    }

    private func open(_ plan: ConnectPlan) async throws -> RelayTarget {
        guard case .task(let open) = plan.method else { return try await open(ConnectRequest(plan)) }
        let permit = try await permit(for: plan)
        do {
            var target = RelayTarget(try await open())
            target.add(plan, permit)
            return target
        } catch {
            if error is DialError || error is ConnectPlan.AttemptFailure || error is CancellationError { throw error }
            throw DialError(.failed, "the target could not be reached: \(error)")
        }
    }

    private func open(_ request: ConnectRequest) async throws -> RelayTarget {
        connect(request)
        do { return try await request.value() } catch is CancellationError {
            abandon(request)
            throw CancellationError()
        }
    }

    /// Waits for a permit as long as the plan allows.
    private func permit(for plan: ConnectPlan) async throws -> (any Sendable)? {
        guard let acquire = plan.acquirePermit else { return nil }
        var pause = Backoff.queueFull
        while true {
            if let permit = acquire() { return permit }
            guard pause.total < plan.timeout else { throw ConnectPlan.AttemptFailure.noPermit }
            try await pause.wait(clock: PollerClock())
        }
    }
}

/// Dials by plans with the connector of a relay, so that all streams of the process share its limits.
package struct RelayDialer: Dialer {
    private let planner: any ConnectPlanner
    private let relay: Relay

    package init(_ planner: any ConnectPlanner, relay: Relay) { (self.planner, self.relay) = (planner, relay) }

    package func dial(_ route: Route) async throws -> Connection {
        try await relay.connect([try await planner.plan(for: route)]).connection()
    }
}

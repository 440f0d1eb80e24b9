import Model
import Synchronization
import SystemIO
import TestSupport

@testable import Team

/// The connection of one broker to a shared store: it records calls, fails, and holds calls back.
final class TestStore: TeamStore {
    struct Record {
        var grants = 0
        var renewals = 0
        var lists = 0
        var writes: [[TeamStoreWrite]] = []
        var failures = 0
    }

    private struct State {
        var record = Record()
        var failure: TeamStoreError?
        var losesNextAnswer = false
        var listLimit: (bytes: Int, error: TeamStoreError)?
        /// The numbers of the next lists that fail, by prefix.
        var failingLists: [String: Int] = [:]
        var gate: AsyncLatch?
        var held = 0
    }

    static let unreachable = TeamStoreError.unreachable(reason: "no server answers")

    let inner: InMemoryTeamStore
    private let state = Mutex(State())

    init(_ inner: InMemoryTeamStore = InMemoryTeamStore()) { self.inner = inner }

    var record: Record { state.withLock { $0.record } }
    /// The number of calls that wait for the gate.
    var heldCalls: Int { state.withLock { $0.held } }

    /// Makes every call fail from now on; nil ends the failure.
    ///
    /// - Parameters:
    ///   - failure: The error of each call.
    ///   - endsStreams: True if the streams of all brokers end too.
    func fail(with failure: TeamStoreError?, endsStreams: Bool = true) {
        state.withLock { $0.failure = failure }
        if failure != nil, endsStreams { inner.breakStreams() }
    }

    /// Makes the next write, and fails.
    func loseNextAnswer() { state.withLock { $0.losesNextAnswer = true } }

    /// Makes every list with more bytes of values fail with `error` from now on.
    func limitLists(to bytes: Int, with error: TeamStoreError = .tooLarge(bytes: 0)) {
        state.withLock { $0.listLimit = (bytes, error) }
    }

    /// Makes the next lists of a prefix fail, as a slow server does.
    func failLists(of prefix: String, times count: Int) { state.withLock { $0.failingLists[prefix] = count } }

    /// Makes writes and renewals wait until the latch is open.
    func hold(behind gate: AsyncLatch) { state.withLock { $0.gate = gate } }

    func release() {
        state.withLock { state in
            defer { state.gate = nil }
            return state.gate
        }?.open()
    }

    func list(_ prefix: String) async throws(TeamStoreError) -> TeamStoreList {
        try enter { $0.lists += 1 }
        let fails = state.withLock { state in
            guard let count = state.failingLists[prefix], count > 0 else { return false }
            state.failingLists[prefix] = count - 1
            return true
        }
        if fails { throw Self.unreachable }
        let list = try await inner.list(prefix)
        if let limit = state.withLock({ $0.listLimit }),
            list.entries.reduce(0, { $0 + $1.value.count }) > limit.bytes
        {
            throw limit.error
        }
        return list
    }

    func changes(of prefix: String, after revision: Int64) -> AsyncThrowingStream<TeamStoreChanges, any Error> {
        do {
            try enter { _ in }
            let changes = inner.changes(of: prefix, after: revision)
            // `fail` breaks only the streams that exist.
            if let failure = state.withLock({ $0.failure }) { throw failure }
            return changes
        } catch { return AsyncThrowingStream { $0.finish(throwing: error) } }
    }

    func write(_ writes: [TeamStoreWrite], if condition: TeamStoreCondition?) async throws(TeamStoreError) -> Bool {
        try enter { $0.writes.append(writes) }
        await waitForGate()
        let isMade = try await inner.write(writes, if: condition)
        let isLost = state.withLock { state in
            defer { state.losesNextAnswer = false }
            return state.losesNextAnswer
        }
        if isLost { throw Self.unreachable }
        return isMade
    }

    func grantSessionLease(timeToLive: Duration) async throws(TeamStoreError) -> SessionLease.ID {
        try enter { $0.grants += 1 }
        return try await inner.grantSessionLease(timeToLive: timeToLive)
    }

    func renewSessionLease(_ id: SessionLease.ID) async throws(TeamStoreError) {
        try enter { $0.renewals += 1 }
        await waitForGate()
        try await inner.renewSessionLease(id)
    }

    func revokeSessionLease(_ id: SessionLease.ID) async throws(TeamStoreError) {
        try enter { _ in }
        try await inner.revokeSessionLease(id)
    }

    private func enter(_ count: (inout Record) -> Void) throws(TeamStoreError) {
        try state.withLock { state throws(TeamStoreError) in
            if let failure = state.failure {
                state.record.failures += 1
                throw failure
            }
            count(&state.record)
        }
    }

    private func waitForGate() async {
        let gate = state.withLock { state in
            if state.gate != nil { state.held += 1 }
            return state.gate
        }
        guard let gate else { return }
        await gate.wait()
        state.withLock { $0.held -= 1 }
    }
}

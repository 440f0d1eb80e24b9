package import Model
import Synchronization
import SystemIO

/// Bounds the memory of the large responses of all apps, by app and in total.
///
/// A response counts with the bytes that have arrived, not with the bytes that it announces. It waits only for other
/// responses of its own app. The oldest response of an app never waits, so two responses cannot wait for each other. At
/// the total limit the largest response of the app with the most bytes is aborted, so no app waits for another app.
package final class LargeResponseBudget: Sendable {
    /// The size in bytes above which a response is large and counts.
    package static let largeSize = 1 << 20
    /// The longest time in seconds without a byte in the middle of a large response.
    package static let stallLimit = Duration.seconds(15)

    /// A large response in memory.
    fileprivate struct Entry {
        let app: EndpointID
        var bytes = 0
        /// Ends the connection of a response that is still arriving; nil for a complete response.
        var abort: (@Sendable () -> Void)?
        var isAborted = false
        var waiting: (bytes: Int, turn: Promise<Void>)?
    }

    private let appLimit: Int
    private let totalLimit: Int
    /// The entries by number. The numbers rise, so the lowest one of an app is its oldest response.
    private let state = Mutex<(entries: [Int: Entry], last: Int)>(([:], 0))

    /// Creates a budget.
    ///
    /// - Parameters:
    ///   - appLimit: The limit for an app in bytes. The oldest response of the app may exceed it.
    ///   - totalLimit: The limit for all apps in bytes.
    package init(appLimit: Int = 32 << 20, totalLimit: Int = 128 << 20) {
        self.appLimit = appLimit
        self.totalLimit = totalLimit
    }

    /// The number of bytes that are reserved.
    package var reserved: Int { state.withLock { $0.entries.values.reduce(0) { $0 + $1.bytes } } }

    /// The number of responses that wait for others of their app.
    var waiting: Int { state.withLock { $0.entries.values.count { $0.waiting != nil } } }

    /// Begins a large response. Its reservation holds no bytes yet.
    ///
    /// - Parameters:
    ///   - app: The app that sends the response.
    ///   - abort: Ends the connection, so that the reader notices the end.
    /// - Returns: The reservation of the response.
    package func begin(for app: EndpointID, abort: @escaping @Sendable () -> Void) -> LargeResponseReservation {
        let number = state.withLock { state in
            state.last += 1
            state.entries[state.last] = Entry(app: app, abort: abort)
            return state.last
        }
        return LargeResponseReservation(number, of: self)
    }

    /// The error of an aborted response.
    var exceeded: ExchangeError {
        .invalid("a large result while the results of all apps exceed \(totalLimit >> 20) MiB")
    }

    fileprivate func isAborted(_ number: Int) -> Bool { state.withLock { $0.entries[number]?.isAborted ?? true } }

    /// Reserves bytes without waiting.
    ///
    /// - Returns: A promise to wait for; nil if the bytes are reserved.
    /// - Throws: `ExchangeError` if the response was aborted.
    fileprivate func resizeNow(_ number: Int, to bytes: Int) throws(ExchangeError) -> Promise<Void>? {
        let (turn, aborts) = state.withLock { state -> (Promise<Void>?, [@Sendable () -> Void]) in
            guard let entry = state.entries[number], !entry.isAborted else { return (nil, []) }
            guard mayHold(bytes, number, state.entries) else {
                let turn = Promise<Void>()
                state.entries[number]?.waiting = (bytes, turn)
                return (turn, [])
            }
            state.entries[number]?.bytes = bytes
            return (nil, enforceTotal(&state.entries))
        }
        for abort in aborts { abort() }
        if isAborted(number) { throw exceeded }
        return turn
    }

    /// Waits for the promise of `resizeNow`.
    fileprivate func wait(for turn: Promise<Void>, of number: Int) async throws {
        do { try await turn.value() } catch {
            state.withLock { $0.entries[number]?.waiting = nil }
            throw error
        }
    }

    fileprivate func complete(_ number: Int) { state.withLock { $0.entries[number]?.abort = nil } }

    fileprivate func release(_ number: Int) {
        let aborts = state.withLock { state in
            state.entries[number] = nil
            admitWaiting(&state.entries)
            return enforceTotal(&state.entries)
        }
        for abort in aborts { abort() }
    }

    private func mayHold(_ bytes: Int, _ number: Int, _ entries: [Int: Entry]) -> Bool {
        guard let entry = entries[number] else { return false }
        let others = entries.filter { $0.value.app == entry.app && $0.key != number && !$0.value.isAborted }
        if others.keys.allSatisfy({ $0 > number }) { return true }
        return others.values.reduce(bytes) { $0 + $1.bytes } <= appLimit
    }

    /// Admits the waiting responses that may continue, the oldest first.
    private func admitWaiting(_ entries: inout [Int: Entry]) {
        for number in entries.keys.sorted() {
            guard let (bytes, turn) = entries[number]?.waiting, mayHold(bytes, number, entries) else { continue }
            entries[number]?.waiting = nil
            // A cancelled reader releases its reservation.
            if turn.complete(.success(())) { entries[number]?.bytes = bytes }
        }
    }

    /// Aborts responses until the total limit is kept.
    ///
    /// - Returns: The closures that end their connections.
    private func enforceTotal(_ entries: inout [Int: Entry]) -> [@Sendable () -> Void] {
        var aborts: [@Sendable () -> Void] = []
        while entries.values.reduce(0, { $0 + $1.bytes }) > totalLimit {
            let apps = Dictionary(grouping: entries.values, by: \.app).mapValues { $0.reduce(0) { $0 + $1.bytes } }
            let arriving = entries.filter { $0.value.abort != nil && $0.value.bytes > 0 }
            // Complete responses are being reduced and end by themselves.
            let largest = arriving.max { first, second in
                (apps[first.value.app] ?? 0, first.value.bytes) < (apps[second.value.app] ?? 0, second.value.bytes)
            }
            guard let (number, entry) = largest else { break }
            entries[number]?.bytes = 0
            entries[number]?.isAborted = true
            entry.waiting?.turn.complete(.failure(exceeded))
            entries[number]?.waiting = nil
            if let abort = entry.abort { aborts.append(abort) }
            entries[number]?.abort = nil
            admitWaiting(&entries)
        }
        return aborts
    }
}

/// The bytes of one large response in a `LargeResponseBudget`, released at the latest on deallocation.
package final class LargeResponseReservation: Sendable {
    /// The unit of a reservation in bytes. Reserving byte by byte would cost a lock for each chunk.
    private static let step = 1 << 20

    private let number: Int
    private let budget: LargeResponseBudget
    private let reserved = Atomic(0)

    fileprivate init(_ number: Int, of budget: LargeResponseBudget) {
        self.number = number
        self.budget = budget
    }

    /// Throws if the response was aborted in favour of other apps.
    package func check() throws(ExchangeError) { if budget.isAborted(number) { throw budget.exceeded } }

    /// Reserves at least this many bytes.
    ///
    /// - Parameters:
    ///   - bytes: The number of bytes in memory.
    ///   - limit: The longest wait for other responses of the app.
    ///   - clock: The clock of the limit.
    /// - Throws: `ExchangeError` if the response was aborted or the limit has passed, `CancellationError`.
    package func reserve(_ bytes: Int, within limit: Duration, clock: any Clock<Duration>) async throws {
        let wanted = (bytes + Self.step - 1) / Self.step * Self.step
        guard wanted > reserved.load(ordering: .relaxed) else { return }
        if let turn = try budget.resizeNow(number, to: wanted) {
            let isReserved: Void? = try await withTimeout(limit, clock: clock) { [budget, number] in
                try await budget.wait(for: turn, of: number)
            }
            guard isReserved != nil else { throw ExchangeError.timedOut(seconds: limit.roundedSeconds) }
        }
        reserved.store(wanted, ordering: .relaxed)
    }

    /// Marks the response as complete: it is not aborted any more.
    package func complete() { budget.complete(number) }

    /// Returns the bytes to the budget. Further calls have no effect.
    package func release() { budget.release(number) }

    deinit { release() }
}

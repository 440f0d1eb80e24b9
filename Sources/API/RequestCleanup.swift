import Synchronization

/// What is to be cleared away when a request is over, however it ends: answered, broken off, or gone before its answer.
final class RequestCleanup: Sendable {
    typealias Duty = @Sendable () async -> Void

    private let duties = Mutex<[Duty]>([])

    func add(_ duty: @escaping Duty) { duties.withLock { $0.append(duty) } }

    /// Does each of them once; last in, first out.
    func clear() async {
        while let duty = duties.withLock({ $0.popLast() }) { await duty() }
    }
}

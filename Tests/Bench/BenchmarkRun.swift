import SystemIO
import TestSupport

/// Runs every trial, round by round, with each forwarder in turn.
///
/// The order differs from round to round, so that no forwarder always runs after the same one.
struct BenchmarkRun: ~Copyable {
    private let plan: BenchmarkPlan
    private let scratch: ScratchFolder
    private let say: (String) -> Void
    private var results = Results()

    init(_ plan: BenchmarkPlan, in scratch: ScratchFolder, say: @escaping (String) -> Void) {
        self.plan = plan
        self.scratch = scratch
        self.say = say
    }

    consuming func results() async throws -> Results {
        let phone = try Phone(in: scratch)
        for kind in plan.beds {
            let bed = try await TestBed(kind, phone: phone, in: scratch)
            var standing: [ForwarderKind: Forwarder] = [:]
            for trial in plan.trials(on: kind) { try await run(trial, on: bed, &standing) }
            for forwarder in standing.values { try await forwarder.stop() }
        }
        return results
    }

    private mutating func run(
        _ trial: any Trial,
        on bed: TestBed,
        _ standing: inout [ForwarderKind: Forwarder]
    ) async throws {
        let kinds = ForwarderKind.allCases.filter { trial.suits($0, on: bed.kind) }
        guard !kinds.isEmpty else { return }
        for round in 0..<(trial.rounds ?? plan.rounds) {
            say("\(bed.kind.rawValue): \(trial.topic), round \(round + 1)")
            for place in kinds.indices {
                let kind = BenchmarkPlan.order(of: kinds, in: round)[place]
                // A reused forwarder is idle while others are measured.
                let known = trial.needsFreshStart ? nil : standing[kind]
                guard let forwarder = await started(kind, known, trial, on: bed, round) else { continue }
                let isWell = await measure(trial, forwarder, on: bed, round)
                if trial.needsFreshStart || !isWell {
                    try await forwarder.stop()
                    standing[kind] = trial.needsFreshStart ? standing[kind] : nil
                } else {
                    standing[kind] = forwarder
                }
            }
        }
    }

    /// Starts a forwarder, or records its failure to start as a result.
    private mutating func started(
        _ kind: ForwarderKind,
        _ known: Forwarder?,
        _ trial: any Trial,
        on bed: TestBed,
        _ round: Int
    ) async -> Forwarder? {
        if let known { return known }
        do {
            return try await bed.start(kind)
        } catch {
            results.add(failure: "\(error)", of: kind, on: bed.kind, topic: trial.topic, round: round)
            return nil
        }
    }

    /// - Returns: True if the forwarder can be reused.
    private mutating func measure(_ trial: any Trial, _ forwarder: Forwarder, on bed: TestBed, _ round: Int) async
        -> Bool
    {
        do {
            let readings = try await onThread { try trial.run(forwarder) }
            results.add(readings, of: forwarder.kind, on: bed.kind, round: round)
            return forwarder.exitMessage == nil
        } catch {
            let words = [String(describing: error), forwarder.exitMessage].compactMap { $0 }.joined(separator: "; ")
            results.add(failure: words, of: forwarder.kind, on: bed.kind, topic: trial.topic, round: round)
            return false
        }
    }

    /// Runs a blocking body on its own thread, not in Swift's thread pool.
    private func onThread<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            startThread(named: "bench-load") { continuation.resume(with: Result { try body() }) }
        }
    }
}

import TestSupport
import SystemIO

/// The run: every trial, round by round, each of the compared in turn.
///
/// The first of a round is the last of the next but one, so that nobody is always measured after the same neighbour.
struct Run: ~Copyable {
    private let plan: Plan
    private let scratch: ScratchFolder
    private let say: (String) -> Void
    private var results = Results()

    init(_ plan: Plan, in scratch: ScratchFolder, say: @escaping (String) -> Void) {
        self.plan = plan
        self.scratch = scratch
        self.say = say
    }

    consuming func results() async throws -> Results {
        let phone = try Phone(in: scratch)
        for kind in plan.beds {
            let bed = try await Bed(kind, phone: phone, in: scratch)
            var standing: [ForwarderKind: Forwarder] = [:]
            for trial in plan.trials(on: kind) { try await run(trial, on: bed, &standing) }
            for forwarder in standing.values { try await forwarder.stop() }
        }
        return results
    }

    private mutating func run(
        _ trial: any Trial,
        on bed: Bed,
        _ standing: inout [ForwarderKind: Forwarder]
    ) async throws {
        let kinds = ForwarderKind.allCases.filter { trial.suits($0, on: bed.kind) }
        guard !kinds.isEmpty else { return }
        for round in 0..<(trial.rounds ?? plan.rounds) {
            say("\(bed.kind.rawValue): \(trial.topic), round \(round + 1)")
            for place in kinds.indices {
                let kind = kinds[(place + round) % kinds.count]
                // A standing one keeps quiet while others are measured.
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

    /// One that does not start is a finding like others.
    private mutating func started(
        _ kind: ForwarderKind,
        _ known: Forwarder?,
        _ trial: any Trial,
        on bed: Bed,
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

    /// - Returns: Whether the forwarder can be used again.
    private mutating func measure(_ trial: any Trial, _ forwarder: Forwarder, on bed: Bed, _ round: Int) async -> Bool {
        do {
            let readings = try await onThread { try trial.run(forwarder) }
            results.add(readings, of: forwarder.kind, on: bed.kind, round: round)
            return forwarder.lastWords == nil
        } catch {
            let words = [String(describing: error), forwarder.lastWords].compactMap { $0 }.joined(separator: "; ")
            results.add(failure: words, of: forwarder.kind, on: bed.kind, topic: trial.topic, round: round)
            return false
        }
    }

    /// Runs what blocks on a thread of its own, so that Swift's pool never does.
    private func onThread<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            startThread(named: "bench-load") { continuation.resume(with: Result { try body() }) }
        }
    }
}

import SystemIO

/// Connects, has one byte echoed, and closes, again and again on one thread.
struct ConnectLoop {
    /// Enough to say that it fails, when each failure may take `patience`.
    private static let enough = 20
    private static let patience = Duration.milliseconds(500)

    /// What the good ones took, in microseconds.
    private(set) var times: [Double] = []
    private(set) var failures: [BenchError] = []
    private(set) var hasGivenUp = false

    init(_ count: Int, through door: Door) throws {
        times.reserveCapacity(count)
        for _ in 0..<count {
            do throws(BenchError) {
                times.append(try Self.connect(door))
            } catch {
                failures.append(error)
                hasGivenUp = failures.count == Self.enough
                if hasGivenUp { return }
            }
        }
    }

    /// Of the good ones alone: a hang is counted as one, and no part of a rate. Nil when none was good.
    var rate: Double? { times.isEmpty ? nil : Double(times.count) * 1e6 / times.reduce(0, +) }

    /// Nil when there is nothing to tell.
    var note: String? {
        guard !failures.isEmpty else { return nil }
        let hangs = failures.count { $0 == .hung }
        let rest = Set(failures).filter { $0 != .hung }.map(\.description).sorted()
        let end = hasGivenUp ? ", given up after \(times.count) good ones" : ""
        return (["\(failures.count) failed, \(hangs) of them hang"] + rest).joined(separator: "; ") + end
    }

    private static func connect(_ door: Door) throws(BenchError) -> Double {
        do {
            let start = ContinuousClock.now
            let stream = try door.open(patience: patience)
            try stream.send([1])
            _ = try stream.receive(1)
            return (ContinuousClock.now - start).microseconds
        } catch let error as BenchError {
            throw error
        } catch {
            throw .failed(call: "connect", words: "\(error)")
        }
    }
}

import SystemIO
import TestSupport

/// Repeatedly connects, echoes one byte, and closes, on one thread.
struct ConnectLoop {
    /// The number of failures after which the loop stops, because each may take `timeout`.
    private static let enough = 20
    private static let timeout = Duration.milliseconds(500)

    /// The durations of the successful connections in microseconds.
    private(set) var times: [Double] = []
    private(set) var failures: [BlockingStream.Failure] = []
    private(set) var hasGivenUp = false

    init(_ count: Int, through address: AppAddress) throws {
        times.reserveCapacity(count)
        for _ in 0..<count {
            do throws(BlockingStream.Failure) {
                times.append(try Self.connect(address))
            } catch {
                failures.append(error)
                hasGivenUp = failures.count == Self.enough
                if hasGivenUp { return }
            }
        }
    }

    /// The rate per second of the successful connections; nil if all failed. A forwarder that hung has no figure, because
    /// its good connections do not show what it costs to use.
    var rate: Double? { isVoid ? nil : Double(times.count) * 1e6 / times.reduce(0, +) }

    /// A percentile of the durations; nil without a figure.
    func percentile(_ share: Int) -> Double? { isVoid ? nil : times.percentile(share) }

    private var isVoid: Bool { times.isEmpty || failures.contains(.hung) }

    /// A description of the failures; nil if there are none.
    var note: String? {
        guard !failures.isEmpty else { return nil }
        let hangs = failures.count { $0 == .hung }
        let rest = Set(failures).filter { $0 != .hung }.map(\.description).sorted()
        let end = hasGivenUp ? ", given up after \(times.count) good ones" : ""
        return (["\(failures.count) failed, \(hangs) of them hang"] + rest).joined(separator: "; ") + end
    }

    private static func connect(_ address: AppAddress) throws(BlockingStream.Failure) -> Double {
        do {
            let start = ContinuousClock.now
            let stream = try address.open(timeout: timeout)
            try stream.send([1])
            _ = try stream.receive(1)
            return (ContinuousClock.now - start).microseconds
        } catch let error as BlockingStream.Failure {
            throw error
        } catch {
            throw .failed(call: "connect", words: "\(error)")
        }
    }
}

import TestSupport

/// Measures round trips of 64 bytes on one stream.
struct RoundTripTrial: Trial {
    let count: Int

    var topic: Topic { .roundtrip }

    func run(_ forwarder: Forwarder) throws -> [Reading] {
        let message = [UInt8](repeating: 7, count: 64)
        let stream = try forwarder.address(of: .echo).open()
        // Warm-up for threads and caches.
        for _ in 0..<min(count, 100) { try trip(message, stream) }
        let before = forwarder.processorTime()
        var times: [Double] = []
        times.reserveCapacity(count)
        for _ in 0..<count {
            let start = ContinuousClock.now
            try trip(message, stream)
            times.append((ContinuousClock.now - start).microseconds)
        }
        let cpu = forwarder.processorTime().spent(since: before)
        var readings = [
            Reading(Metric("64 B round trip, p50", "us"), times.percentile(50)),
            Reading(Metric("64 B round trip, p99", "us"), times.percentile(99)),
        ]
        if forwarder.kind.isProgram {
            readings.append(Reading(Metric("64 B round trip", "CPU us"), cpu * 1e6 / Double(count)))
        }
        return readings
    }

    private func trip(_ message: [UInt8], _ stream: borrowing BlockingStream) throws {
        try stream.send(message)
        guard try stream.receive(message.count) == message else { throw BlockingStream.Failure.garbled }
    }
}

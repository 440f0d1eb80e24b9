import TestSupport

/// Measures the throughput of one stream, first up (client to phone), then down.
///
/// The upload ends with the phone's confirmation; no half-close is needed.
struct ThroughputTrial: Trial {
    /// The bytes in each direction.
    let up: Int
    let down: Int

    var topic: Topic { .throughput }

    func run(_ forwarder: Forwarder) throws -> [Reading] {
        let upward = try measure("one stream up", .sink, TransferRequest(length: up), forwarder) { stream, request in
            try stream.give(request)
            _ = try stream.receive(1)
        }
        let downward = try measure("one stream down", .source, TransferRequest(length: down), forwarder) {
            stream,
            request in
            _ = try stream.take(request)
        }
        return upward + downward
    }

    /// The processor time is read while the stream is open, because socat has one process per stream.
    private func measure(
        _ name: String,
        _ app: App,
        _ request: TransferRequest,
        _ forwarder: Forwarder,
        _ move: (borrowing BlockingStream, TransferRequest) throws -> Void
    ) throws -> [Reading] {
        let before = forwarder.processorTime()
        let stream = try forwarder.address(of: app).open()
        let start = ContinuousClock.now
        try stream.send(request.bytes)
        try move(stream, request)
        let seconds = (ContinuousClock.now - start).seconds
        let cpu = forwarder.processorTime().spent(since: before)
        let gigabytes = Double(request.length) / 1e9
        var readings = [Reading(Metric(name, "GB/s"), gigabytes / seconds)]
        if forwarder.kind.isProgram { readings.append(Reading(Metric(name, "CPU s/GB"), cpu / gigabytes)) }
        return readings
    }
}

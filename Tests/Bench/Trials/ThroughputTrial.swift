/// One stream as fast as it goes, first up (client to phone), then down.
///
/// Up is over when the phone says that it has all; nobody has to half-close.
struct ThroughputTrial: Trial {
    /// Bytes each way.
    let up: Int
    let down: Int

    var topic: Topic { .throughput }

    func run(_ forwarder: Forwarder) throws -> [Reading] {
        let upward = try measure("one stream up", .sink, Order(length: up), forwarder) { stream, order in
            try stream.give(order)
            _ = try stream.receive(1)
        }
        let downward = try measure("one stream down", .source, Order(length: down), forwarder) { stream, order in
            _ = try stream.take(order)
        }
        return upward + downward
    }

    /// The processor time is read while the stream is still there: socat has a process for it.
    private func measure(
        _ name: String,
        _ app: App,
        _ order: Order,
        _ forwarder: Forwarder,
        _ move: (borrowing ByteStream, Order) throws -> Void
    ) throws -> [Reading] {
        let before = forwarder.processorTime()
        let stream = try forwarder.door(to: app).open()
        let start = ContinuousClock.now
        try stream.send(order.bytes)
        try move(stream, order)
        let seconds = (ContinuousClock.now - start).seconds
        let cpu = forwarder.processorTime().spent(since: before)
        let gigabytes = Double(order.length) / 1e9
        var readings = [Reading(Metric(name, "GB/s"), gigabytes / seconds)]
        if forwarder.kind.isProgram { readings.append(Reading(Metric(name, "CPU s/GB"), cpu / gigabytes)) }
        return readings
    }
}

/// Measures the rate of consecutive connections, the duration of one, and the forwarder's processor time.
struct ConnectTrial: Trial {
    let count: Int

    var topic: Topic { .connect }

    func run(_ forwarder: Forwarder) throws -> [Reading] {
        let before = forwarder.processorTime()
        let loop = try ConnectLoop(count, through: forwarder.address(of: .echo))
        let cpu = forwarder.processorTime().spent(since: before)
        var readings = [
            Reading(Metric("connect + echo + close", "/s"), loop.rate, note: loop.note),
            Reading(Metric("connect + echo, p50", "us"), loop.percentile(50)),
            Reading(Metric("connect + echo, p99", "us"), loop.percentile(99)),
        ]
        if forwarder.kind.isProgram, loop.rate != nil {
            readings.append(Reading(Metric("connect + echo + close", "CPU us"), cpu * 1e6 / Double(count)))
        }
        return readings
    }
}

/// Measures the rate of consecutive connections and the duration of one.
struct ConnectTrial: Trial {
    let count: Int

    var topic: Topic { .connect }

    func run(_ forwarder: Forwarder) throws -> [Reading] {
        let loop = try ConnectLoop(count, through: forwarder.address(of: .echo))
        return [
            Reading(Metric("connect + echo + close", "/s"), loop.rate, note: loop.note),
            Reading(Metric("connect + echo, p50", "us"), loop.percentile(50)),
            Reading(Metric("connect + echo, p99", "us"), loop.percentile(99)),
        ]
    }
}

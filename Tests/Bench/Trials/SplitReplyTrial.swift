import TestSupport

/// Measures the delay of a reply that an app sends in two small writes, without the app's own pause.
struct SplitReplyTrial: Trial {
    let count: Int

    var topic: Topic { .split }

    func run(_ forwarder: Forwarder) throws -> [Reading] {
        let stream = try forwarder.address(of: .split).open()
        var times: [Double] = []
        for _ in 0..<count {
            let start = ContinuousClock.now
            try stream.send([1])
            _ = try stream.receive(2 * SplitReply.half)
            times.append((ContinuousClock.now - start - SplitReply.gap).seconds * 1e3)
        }
        return [Reading(Metric("reply in two writes, p50 after its gap", "ms"), times.percentile(50))]
    }
}

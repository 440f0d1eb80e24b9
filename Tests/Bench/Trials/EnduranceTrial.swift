/// Counts the failures among a large number of consecutive connections.
struct EnduranceTrial: Trial {
    let count: Int

    var topic: Topic { .endurance }
    var rounds: Int? { 1 }
    var needsFreshStart: Bool { true }

    func run(_ forwarder: Forwarder) throws -> [Reading] {
        let loop = try ConnectLoop(count, through: forwarder.address(of: .echo))
        let metric = Metric("failed of \(count.grouped) connects in a row", "")
        return [Reading(metric, Double(loop.failures.count), note: loop.note)]
    }
}

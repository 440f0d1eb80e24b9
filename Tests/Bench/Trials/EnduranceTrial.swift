/// How many of very many connections, one after the other, fail.
struct EnduranceTrial: Trial {
    let count: Int

    var topic: Topic { .endurance }
    var rounds: Int? { 1 }
    var needsFreshStart: Bool { true }

    func run(_ forwarder: Forwarder) throws -> [Reading] {
        let loop = try ConnectLoop(count, through: forwarder.door(to: .echo))
        let metric = Metric("failed of \(count.grouped) connects in a row", "")
        return [Reading(metric, Double(loop.failures.count), note: loop.note)]
    }
}

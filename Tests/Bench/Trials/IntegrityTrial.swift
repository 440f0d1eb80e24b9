/// Whether the bytes that arrive are those that were sent: a forwarder that loses some is not to be called fast.
struct IntegrityTrial: Trial {
    let length: Int

    var topic: Topic { .integrity }
    var rounds: Int? { 1 }

    func run(_ forwarder: Forwarder) throws -> [Reading] {
        let order = Order(length: length, isPattern: true)
        var faults: [String] = []
        do {
            let sink = try forwarder.door(to: .sink).open()
            try sink.send(order.bytes)
            try sink.give(order)
            if try sink.receive(1) != [1] { throw BenchError.garbled }
        } catch let error as BenchError {
            faults.append("up: \(error)")
        }
        do {
            let source = try forwarder.door(to: .source).open()
            try source.send(order.bytes)
            if try !source.take(order) { throw BenchError.garbled }
        } catch let error as BenchError {
            faults.append("down: \(error)")
        }
        let metric = Metric("\(length >> 20) MiB of a pattern, wrong ways of 2", "")
        return [Reading(metric, Double(faults.count), note: faults.isEmpty ? nil : faults.joined(separator: "; "))]
    }
}

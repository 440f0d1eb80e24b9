import TestSupport

/// Checks that the received bytes equal the sent ones.
struct IntegrityTrial: Trial {
    let length: Int

    var topic: Topic { .integrity }
    var rounds: Int? { 1 }

    func run(_ forwarder: Forwarder) throws -> [Reading] {
        let request = TransferRequest(length: length, isPattern: true)
        var faults: [String] = []
        do {
            let sink = try forwarder.address(of: .sink).open()
            try sink.send(request.bytes)
            try sink.give(request)
            if try sink.receive(1) != [1] { throw BlockingStream.Failure.garbled }
        } catch let error as BlockingStream.Failure {
            faults.append("up: \(error)")
        }
        do {
            let source = try forwarder.address(of: .source).open()
            try source.send(request.bytes)
            if try !source.take(request) { throw BlockingStream.Failure.garbled }
        } catch let error as BlockingStream.Failure {
            faults.append("down: \(error)")
        }
        let metric = Metric("\(length >> 20) MiB of a pattern, wrong ways of 2", "")
        return [Reading(metric, Double(faults.count), note: faults.isEmpty ? nil : faults.joined(separator: "; "))]
    }
}

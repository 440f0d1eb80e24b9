import SystemIO
import TestSupport

/// Measures the cost of idle connections, and whether all of them still work.
struct IdleTrial: Trial {
    private static let timeout = Duration.seconds(2)

    let count: Int
    let kinds: Set<ForwarderKind>

    var topic: Topic { .idle }
    var needsFreshStart: Bool { true }

    func suits(_ kind: ForwarderKind, on bed: TestBed.Kind) -> Bool { kinds.contains(kind) && bed == .plain }

    func run(_ forwarder: Forwarder) throws -> [Reading] {
        let address = try forwarder.address(of: .echo)
        let before = forwarder.figures()
        var held: [Held] = []
        var failure: (any Error)?
        // Opens the connections one after the other and uses each once; bursts are a different trial.
        while held.count < count, failure == nil {
            do {
                let client = Held(try address.open(timeout: Self.timeout))
                try client.echo()
                held.append(client)
            } catch {
                failure = error
            }
        }
        let figures = forwarder.figures()
        let alive = held.count { (try? $0.echo()) != nil }
        let growth = Double(figures.memory - before.memory) / Double(count)
        let words = [
            failure.map { "connection \(held.count + 1): \($0)" }, forwarder.exitMessage,
        ].compactMap { $0 }
        let name = "\(count.grouped) idle"
        let isWhole = alive == count && forwarder.kind.isProgram
        return [
            Reading(
                Metric("\(name), alive", ""),
                Double(alive),
                note: words.isEmpty ? nil : words.joined(separator: "; ")
            ),
            Reading(Metric("\(name), memory", "MB"), isWhole ? Double(figures.memory) / 1e6 : nil),
            Reading(Metric("\(name), memory for one", "KB"), isWhole ? growth / 1e3 : nil),
            Reading(Metric("\(name), threads", ""), isWhole ? Double(figures.threads) : nil),
            Reading(Metric("\(name), descriptors", ""), isWhole ? Double(figures.descriptors) : nil),
        ]
    }

    private final class Held {
        private let stream: BlockingStream

        init(_ stream: consuming BlockingStream) { self.stream = stream }

        func echo() throws {
            try stream.send([1])
            _ = try stream.receive(1)
        }
    }
}

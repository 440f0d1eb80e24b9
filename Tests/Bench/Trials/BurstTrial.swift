/// Counts the failures among connections that are opened at the same time.
struct BurstTrial: Trial {
    private static let limit = Duration.seconds(5)

    let count: Int
    /// The test bed; nil for every bed.
    let bed: TestBed.Kind?
    let kinds: Set<ForwarderKind>

    var topic: Topic { .burst }
    var needsFreshStart: Bool { true }

    func suits(_ kind: ForwarderKind, on bed: TestBed.Kind) -> Bool {
        kinds.contains(kind) && kind.stands(on: bed) && (self.bed == nil || self.bed == bed)
    }

    func run(_ forwarder: Forwarder) throws -> [Reading] {
        let start = ContinuousClock.now
        var clients = try ConcurrentClients(count, through: forwarder.address(of: .echo))
        clients.waitForEchoes(until: start + Self.limit)
        let seconds = (ContinuousClock.now - start).seconds
        let failed = count - clients.echoed
        let words = [failed > 0 ? clients.causes : nil, forwarder.exitMessage].compactMap { $0 }
        return [
            Reading(
                Metric("failed of \(count.grouped) at once", ""),
                Double(failed),
                note: words.isEmpty ? nil : words.joined(separator: "; ")
            ),
            Reading(Metric("\(count.grouped) at once, all echoed after", "ms"), failed == 0 ? seconds * 1e3 : nil),
        ]
    }
}

/// How many fail of connections that are opened all at once.
struct BurstTrial: Trial {
    private static let limit = Duration.seconds(5)

    let count: Int
    /// Nil is every bed.
    let bed: Bed.Kind?
    let kinds: Set<ForwarderKind>

    var topic: Topic { .burst }
    var needsFreshStart: Bool { true }

    func suits(_ kind: ForwarderKind, on bed: Bed.Kind) -> Bool {
        kinds.contains(kind) && kind.stands(on: bed) && (self.bed == nil || self.bed == bed)
    }

    func run(_ forwarder: Forwarder) throws -> [Reading] {
        let start = ContinuousClock.now
        var crowd = try Crowd(count, through: forwarder.door(to: .echo))
        crowd.waitForEchoes(until: start + Self.limit)
        let seconds = (ContinuousClock.now - start).seconds
        let failed = count - crowd.echoed
        let words = [failed > 0 ? crowd.causes : nil, forwarder.lastWords].compactMap { $0 }
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

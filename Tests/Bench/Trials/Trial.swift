/// A measurement that is the same for each forwarder.
protocol Trial: Sendable {
    var topic: Topic { get }
    /// The number of rounds; nil for the default of the run.
    var rounds: Int? { get }
    /// True if the trial needs a new forwarder, because it measures growth since the start or may crash it.
    var needsFreshStart: Bool { get }

    func suits(_ kind: ForwarderKind, on bed: TestBed.Kind) -> Bool

    /// Runs one round on a thread that may block.
    func run(_ forwarder: Forwarder) throws -> [Reading]
}

extension Trial {
    var rounds: Int? { nil }
    var needsFreshStart: Bool { false }

    func suits(_ kind: ForwarderKind, on bed: TestBed.Kind) -> Bool { kind.stands(on: bed) && kind != .endpoint }
}

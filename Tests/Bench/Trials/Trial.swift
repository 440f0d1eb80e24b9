/// One thing that is measured, the same way for each of the compared.
protocol Trial: Sendable {
    var topic: Topic { get }
    /// Nil is as many as the run was asked for.
    var rounds: Int? { get }
    /// Whether a forwarder is to be started for it, because it counts what is left after its start, or may not survive.
    var needsFreshStart: Bool { get }

    func suits(_ kind: ForwarderKind, on bed: Bed.Kind) -> Bool

    /// One round, on a thread that may block.
    func run(_ forwarder: Forwarder) throws -> [Reading]
}

extension Trial {
    var rounds: Int? { nil }
    var needsFreshStart: Bool { false }

    func suits(_ kind: ForwarderKind, on bed: Bed.Kind) -> Bool { kind.stands(on: bed) && kind != .endpoint }
}

/// One direction of a relayed connection: bytes from a source to a sink, in order, none lost, none held but those that the
/// sink does not take yet.
struct RelayDirection: ~Copyable {
    /// How much one connection may carry before the others have their turn.
    static let budget = 1 << 20

    /// Handed over to the sink's kernel so far.
    private(set) var bytes: UInt64 = 0
    /// No byte will be handed over any more: the source ended and all of it was delivered, or the sink is gone.
    private(set) var isEnded = false
    /// The sink went while bytes for it waited.
    private(set) var hasLoss = false
    /// The sink is gone for good; what comes is read and thrown away, so that the source is not held up.
    var discards = false

    private var waiting: RelayBuffer?

    /// - Parameters:
    ///   - early: Bytes that were read from the source before.
    ///   - space: Where the buffer for them comes from.
    init(early: [UInt8] = [], in space: RelaySpace) {
        early.withUnsafeBytes { if !$0.isEmpty { waiting = space.buffer(holding: $0) } }
    }

    var isEmpty: Bool { waiting == nil }

    /// Moves bytes until the source has none, the sink takes none, or the budget is used up.
    ///
    /// - Returns: How many bytes moved, and whether more could.
    mutating func pump(
        from source: inout RelayEnd,
        to sink: inout RelayEnd,
        through space: RelaySpace
    ) -> (moved: Int, hasMore: Bool) {
        var moved = 0
        if discards, let rest = waiting.take() { space.recycle(rest) }
        while !isEnded {
            if waiting != nil {
                guard sink.isWritable else { break }
                moved += deliver(to: &sink, space)
            } else if source.isAtEnd {
                isEnded = true
            } else if source.isReadable, sink.isWritable || discards {
                guard moved < Self.budget else { return (moved, true) }
                let count = source.receive(into: space.scratch)
                if discards {
                    moved += count
                } else if count > 0 {
                    moved += pass(UnsafeRawBufferPointer(rebasing: space.scratch[..<count]), to: &sink, space)
                }
            } else {
                break
            }
            if sink.isBroken, !discards { breakOff(space) }
        }
        return (moved, false)
    }

    /// Gives up: the sink will never take what waits.
    private mutating func breakOff(_ space: RelaySpace) {
        isEnded = true
        guard let rest = waiting.take() else { return }
        hasLoss = true
        space.recycle(rest)
    }

    private mutating func pass(_ bytes: UnsafeRawBufferPointer, to sink: inout RelayEnd, _ space: RelaySpace) -> Int {
        let sent = sink.send(bytes)
        self.bytes += UInt64(sent)
        if sent < bytes.count {
            waiting = space.buffer(holding: UnsafeRawBufferPointer(rebasing: bytes[sent...]))
        }
        return sent
    }

    private mutating func deliver(to sink: inout RelayEnd, _ space: RelaySpace) -> Int {
        guard var buffer = waiting.take() else { return 0 }
        let sent = sink.send(buffer.bytes)
        bytes += UInt64(sent)
        buffer.drop(sent)
        if buffer.isEmpty { space.recycle(buffer) } else { waiting = consume buffer }
        return sent
    }
}

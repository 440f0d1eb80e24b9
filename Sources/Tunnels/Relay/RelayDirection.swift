/// One direction of a relayed connection: bytes from a source to a sink, in order, none lost, none held but those that the
/// sink does not take yet.
struct RelayDirection: ~Copyable {
    /// How much one connection may carry before the others have their turn.
    static let budget = 1 << 20
    /// How much has to come at a time to be worth a pipe's four calls.
    private static let bulk = 32 * 1_024

    /// Handed over to the sink's kernel so far.
    private(set) var bytes: UInt64 = 0
    /// No byte will be handed over any more: the source ended and all of it was delivered, or the sink is gone.
    private(set) var isEnded = false
    /// The sink went while bytes for it waited.
    private(set) var hasLoss = false
    /// The sink is gone for good; what comes is read and thrown away, so that the source is not held up.
    var discards = false

    private var waiting: RelayBuffer?
    /// What is moved without copying, while the source has more than the sink takes.
    private var pipe: SplicePipe?
    /// The source sends much at a time. One that does not is cheaper to copy.
    private var isBulk = false

    /// - Parameters:
    ///   - early: Bytes that were read from the source before.
    ///   - space: Where the buffer for them comes from.
    init(early: [UInt8] = [], in space: RelayBufferPool) {
        early.withUnsafeBytes { if !$0.isEmpty { waiting = space.buffer(holding: $0) } }
    }

    var isEmpty: Bool { waiting == nil && pipeIsEmpty }

    private var pipeIsEmpty: Bool {
        switch pipe {
        case .some(let pipe): pipe.isEmpty
        case nil: true
        }
    }

    /// Moves bytes until the source has none, the sink takes none, or the budget is used up.
    ///
    /// - Returns: How many bytes moved, and whether more could.
    mutating func pump(
        from source: inout RelaySocket,
        to sink: inout RelaySocket,
        through space: RelayBufferPool
    ) -> (moved: Int, hasMore: Bool) {
        var moved = 0
        if discards { dropAll(space) }
        while !isEnded {
            if !isEmpty {
                guard sink.isWritable else { break }
                moved += deliver(to: &sink, space)
            } else if source.isAtEnd {
                isEnded = true
            } else if source.isReadable, sink.isWritable || discards {
                guard moved < Self.budget else { return (moved, true) }
                if isBulk, splice(from: source, space) { continue }
                moved += copy(from: &source, to: &sink, space)
            } else {
                break
            }
            if sink.isBroken, !discards { breakOff(space) }
        }
        if isEmpty, let idle = pipe.take() { space.recycle(idle) }
        return (moved, false)
    }

    /// Gives up: the sink will never take what waits.
    private mutating func breakOff(_ space: RelayBufferPool) {
        isEnded = true
        hasLoss = hasLoss || !isEmpty
        dropAll(space)
    }

    private mutating func dropAll(_ space: RelayBufferPool) {
        if let rest = waiting.take() { space.recycle(rest) }
        if let rest = pipe.take() { space.recycle(rest) }
        isBulk = false
    }

    /// Takes what the source has into a pipe.
    ///
    /// - Returns: False when it took nothing; then reading tells what there is.
    private mutating func splice(from source: borrowing RelaySocket, _ space: RelayBufferPool) -> Bool {
        if pipe == nil { pipe = space.pipe() }
        let count = pipe?.fill(from: source.number) ?? 0
        if count > 0 { isBulk = count >= Self.bulk }
        return count > 0
    }

    /// Reads once, and writes what came, or keeps it.
    private mutating func copy(from source: inout RelaySocket, to sink: inout RelaySocket, _ space: RelayBufferPool)
        -> Int
    {
        let count = source.receive(into: space.scratch)
        guard count > 0, !discards else { return count }
        let bytes = UnsafeRawBufferPointer(rebasing: space.scratch[..<count])
        let sent = sink.send(bytes)
        self.bytes += UInt64(sent)
        if sent < count { waiting = space.buffer(holding: UnsafeRawBufferPointer(rebasing: bytes[sent...])) }
        isBulk = source.isTCP && !sink.isTCP && (sent < count || count >= Self.bulk)
        return sent
    }

    private mutating func deliver(to sink: inout RelaySocket, _ space: RelayBufferPool) -> Int {
        var sent = 0
        if var buffer = waiting.take() {
            sent = sink.send(buffer.bytes)
            buffer.drop(sent)
            if buffer.isEmpty { space.recycle(buffer) } else { waiting = consume buffer }
        } else if var loaded = pipe.take() {
            sent = sink.send(&loaded)
            pipe = consume loaded
        }
        bytes += UInt64(sent)
        return sent
    }
}

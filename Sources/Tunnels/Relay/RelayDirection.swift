/// One direction of a relayed connection. It keeps the order of the bytes and buffers only those that the sink does not
/// accept yet.
struct RelayDirection: ~Copyable {
    /// The number of bytes that one connection may move before the other connections have their turn.
    static let budget = 1 << 20
    /// The minimum read size in bytes for which splice(2) with its four system calls is worthwhile.
    private static let bulk = 32 * 1_024

    /// The number of bytes written to the sink.
    private(set) var bytes: UInt64 = 0
    /// True if no more bytes will be written: all bytes up to EOF were delivered, or the sink failed.
    private(set) var isEnded = false
    /// True if the sink failed with bytes pending.
    private(set) var hasLoss = false
    /// True if the sink is gone. Bytes are then read and discarded so that the source is not blocked.
    var discards = false

    private var pending: RelayBuffer?
    /// Holds pending bytes without copying while the source is faster than the sink.
    private var pipe: SplicePipe?
    /// True if the source sends large chunks. Small chunks are cheaper to copy.
    private var isBulk = false

    var isEmpty: Bool { pending == nil && pipeIsEmpty }

    private var pipeIsEmpty: Bool {
        switch pipe {
        case .some(let pipe): pipe.isEmpty
        case nil: true
        }
    }

    /// Moves bytes until the source is empty, the sink is full, or the budget is used up.
    ///
    /// - Returns: The number of moved bytes, and true if more could be moved.
    mutating func pump(
        from source: inout RelaySocket,
        to sink: inout RelaySocket,
        through pool: RelayBufferPool
    ) -> (moved: Int, hasMore: Bool) {
        var moved = 0
        if discards { discardPending(pool) }
        while !isEnded {
            if !isEmpty {
                guard sink.isWritable else { break }
                moved += deliver(to: &sink, pool)
            } else if source.isAtEnd {
                isEnded = true
            } else if source.isReadable, sink.isWritable || discards {
                guard moved < Self.budget else { return (moved, true) }
                if isBulk, splice(from: source, pool) { continue }
                moved += copy(from: &source, to: &sink, pool)
            } else {
                break
            }
            if sink.isBroken, !discards { failSink(pool) }
        }
        if isEmpty, let idle = pipe.take() { pool.recycle(idle) }
        return (moved, false)
    }

    /// Ends the direction because the sink has failed.
    private mutating func failSink(_ pool: RelayBufferPool) {
        isEnded = true
        hasLoss = hasLoss || !isEmpty
        discardPending(pool)
    }

    private mutating func discardPending(_ pool: RelayBufferPool) {
        if let rest = pending.take() { pool.recycle(rest) }
        if let rest = pipe.take() { pool.recycle(rest) }
        isBulk = false
    }

    /// Moves bytes from the source into a pipe.
    ///
    /// - Returns: False if no bytes were moved; a read then tells why.
    private mutating func splice(from source: borrowing RelaySocket, _ pool: RelayBufferPool) -> Bool {
        if pipe == nil { pipe = pool.pipe() }
        let count = pipe?.fill(from: source.number) ?? 0
        if count > 0 { isBulk = count >= Self.bulk }
        return count > 0
    }

    /// Reads once and writes the bytes to the sink; buffers the rest.
    private mutating func copy(from source: inout RelaySocket, to sink: inout RelaySocket, _ pool: RelayBufferPool)
        -> Int
    {
        let count = source.receive(into: pool.scratch)
        guard count > 0, !discards else { return count }
        let bytes = UnsafeRawBufferPointer(rebasing: pool.scratch[..<count])
        let sent = sink.send(bytes)
        self.bytes += UInt64(sent)
        if sent < count { pending = pool.buffer(holding: UnsafeRawBufferPointer(rebasing: bytes[sent...])) }
        isBulk = source.isTCP && !sink.isTCP && (sent < count || count >= Self.bulk)
        return sent
    }

    /// Writes pending bytes to the sink.
    private mutating func deliver(to sink: inout RelaySocket, _ pool: RelayBufferPool) -> Int {
        var sent = 0
        if var buffer = pending.take() {
            sent = sink.send(buffer.bytes)
            buffer.drop(sent)
            if buffer.isEmpty { pool.recycle(buffer) } else { pending = consume buffer }
        } else if var loaded = pipe.take() {
            sent = sink.send(&loaded)
            pipe = consume loaded
        }
        bytes += UInt64(sent)
        return sent
    }
}

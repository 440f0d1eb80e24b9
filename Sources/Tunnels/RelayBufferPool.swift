/// The memory of one relay thread: one space to read into, spare buffers for what cannot be written at once, spare pipes
/// for what need not be copied.
///
/// A connection owns a buffer or a pipe only while bytes of it are on their way, so an idle one costs none.
final class RelayBufferPool {
    /// What one read asks for. A pipe to usbmuxd takes about 208 KiB at once; more makes nothing faster.
    static let size = 256 * 1_024
    private static let spareLimit = 32

    let scratch = UnsafeMutableRawBufferPointer.allocate(byteCount: size, alignment: 4_096)
    private var spare: [UnsafeMutableRawPointer] = []
    private var pipes: [SplicePipe.Ends] = []

    deinit {
        scratch.deallocate()
        for base in spare { base.deallocate() }
        for ends in pipes { _ = SplicePipe(owning: ends) }
    }

    func buffer(holding bytes: UnsafeRawBufferPointer) -> RelayBuffer {
        let capacity = max(bytes.count, Self.size)
        let base = (capacity == Self.size ? spare.popLast() : nil) ?? .allocate(byteCount: capacity, alignment: 4_096)
        UnsafeMutableRawBufferPointer(start: base, count: capacity).copyMemory(from: bytes)
        return RelayBuffer(base, capacity: capacity, count: bytes.count)
    }

    func recycle(_ buffer: consuming RelayBuffer) {
        guard spare.count < Self.spareLimit else { return }
        let (base, capacity) = buffer.release()
        if capacity == Self.size { spare.append(base) } else { base.deallocate() }
    }

    /// An empty pipe; nil when the kernel gives none, and then bytes are copied.
    func pipe() -> SplicePipe? {
        if let ends = pipes.popLast() { return SplicePipe(owning: ends) }
        return SplicePipe()
    }

    /// Takes a pipe back; one that still holds bytes is closed.
    func recycle(_ pipe: consuming SplicePipe) {
        guard pipe.isEmpty, pipes.count < Self.spareLimit else { return }
        pipes.append(pipe.release())
    }
}

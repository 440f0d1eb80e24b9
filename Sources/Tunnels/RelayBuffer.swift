/// Bytes that were read from one end and that the other end does not take yet.
struct RelayBuffer: ~Copyable {
    private let base: UnsafeMutableRawPointer
    private let capacity: Int
    private var taken = 0
    private var end: Int

    /// Owns `base`, whose first `count` bytes wait, from now on.
    fileprivate init(_ base: UnsafeMutableRawPointer, capacity: Int, count: Int) {
        self.base = base
        self.capacity = capacity
        end = count
    }

    deinit { base.deallocate() }

    var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: base + taken, count: end - taken) }
    var isEmpty: Bool { taken == end }

    mutating func drop(_ count: Int) { taken += count }

    fileprivate consuming func release() -> (UnsafeMutableRawPointer, Int) {
        let (base, capacity) = (base, capacity)
        discard self
        return (base, capacity)
    }
}

/// The memory of one relay thread: one space to read into, and spare buffers for what cannot be written at once.
///
/// A connection owns a buffer only while bytes of it wait, so an idle one costs none.
final class RelaySpace {
    /// What one read asks for. A pipe to usbmuxd takes about 208 KiB at once; more makes nothing faster.
    static let size = 256 * 1_024
    private static let spareLimit = 32

    let scratch = UnsafeMutableRawBufferPointer.allocate(byteCount: size, alignment: 4_096)
    private var spare: [UnsafeMutableRawPointer] = []

    deinit {
        scratch.deallocate()
        for base in spare { base.deallocate() }
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
}

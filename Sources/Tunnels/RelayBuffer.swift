/// Bytes that were read from one end and that the other end does not take yet.
struct RelayBuffer: ~Copyable {
    private let base: UnsafeMutableRawPointer
    private let capacity: Int
    private var taken = 0
    private var end: Int

    /// Owns `base`, whose first `count` bytes wait, from now on.
    init(_ base: UnsafeMutableRawPointer, capacity: Int, count: Int) {
        self.base = base
        self.capacity = capacity
        end = count
    }

    deinit { base.deallocate() }

    var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: base + taken, count: end - taken) }
    var isEmpty: Bool { taken == end }

    mutating func drop(_ count: Int) { taken += count }

    consuming func release() -> (UnsafeMutableRawPointer, Int) {
        let (base, capacity) = (base, capacity)
        discard self
        return (base, capacity)
    }
}

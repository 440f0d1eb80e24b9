import CLinux
import Glibc
import SystemIO

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

/// Bytes on their way from a TCP socket to a unix socket that nobody copies: splice(2) moves the pages.
///
/// Worth it in this direction only: from a unix socket to TCP, splice was measured slower than reading and writing.
struct SplicePipe: ~Copyable {
    struct Ends {
        let reading: CInt
        let writing: CInt
    }

    /// A user without privileges may have 64 pipes of this size, and smaller ones after that (pipe(7)); all of them work.
    private static let size: CInt = 1 << 20
    /// SPLICE_F_MOVE | SPLICE_F_NONBLOCK
    private static let flags: UInt32 = 3

    private let reading: Descriptor
    private let writing: Descriptor
    private var count = 0

    /// Nil when the process may have no more descriptors.
    init?() {
        var numbers: [CInt] = [-1, -1]
        guard pipe2(&numbers, O_NONBLOCK | O_CLOEXEC) == 0 else { return nil }
        self.init(owning: Ends(reading: numbers[0], writing: numbers[1]))
        CLinux_set_pipe_size(numbers[1], Self.size)
    }

    /// Takes over an empty pipe.
    init(owning ends: Ends) {
        reading = Descriptor(owning: ends.reading)
        writing = Descriptor(owning: ends.writing)
    }

    var isEmpty: Bool { count == 0 }

    /// Moves what a socket has into the pipe, which must be empty.
    ///
    /// - Returns: How many bytes; 0 where there are none, there will be none, or splice cannot take them: reading tells which.
    mutating func fill(from socket: CInt) -> Int {
        let moved = max(0, splice(socket, nil, writing.number, nil, Int(Self.size), Self.flags))
        count += moved
        return moved
    }

    /// Moves what is in the pipe into a socket.
    ///
    /// - Returns: How many bytes, or -1 with errno.
    mutating func drain(into socket: CInt) -> Int {
        let moved = splice(reading.number, nil, socket, nil, count, Self.flags)
        count -= max(0, moved)
        return moved
    }

    /// Gives the empty pipe away.
    consuming func release() -> Ends {
        Ends(reading: reading.release(), writing: writing.release())
    }
}

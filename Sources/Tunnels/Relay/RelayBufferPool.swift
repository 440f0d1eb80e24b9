import CLinux
import Glibc
import SystemIO

/// Bytes read from one socket that the other socket does not accept yet.
struct RelayBuffer: ~Copyable {
    private let base: UnsafeMutableRawPointer
    private var taken = 0
    private let end: Int

    /// Copies bytes into `base`, which the buffer owns from now on.
    init(copying bytes: UnsafeRawBufferPointer, to base: UnsafeMutableRawPointer) {
        self.base = base
        end = bytes.count
        UnsafeMutableRawBufferPointer(start: base, count: end).copyMemory(from: bytes)
    }

    deinit { base.deallocate() }

    var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: base + taken, count: end - taken) }
    var isEmpty: Bool { taken == end }

    /// Removes bytes from the front.
    mutating func drop(_ count: Int) { taken += count }

    /// Gives up ownership of the memory.
    consuming func release() -> UnsafeMutableRawPointer {
        let base = base
        discard self
        return base
    }
}

/// The memory of one relay thread: a scratch buffer for reads, spare buffers for pending bytes, and spare pipes for
/// splice(2).
///
/// A connection owns a buffer or a pipe only while it has pending bytes. Idle connections use none.
final class RelayBufferPool {
    /// The size of one read in bytes. A write to usbmuxd accepts about 208 KiB; larger reads are not faster.
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

    /// Copies bytes, at most `size`, into a buffer of the pool.
    func buffer(holding bytes: UnsafeRawBufferPointer) -> RelayBuffer {
        RelayBuffer(copying: bytes, to: spare.popLast() ?? .allocate(byteCount: Self.size, alignment: 4_096))
    }

    /// Returns a buffer to the pool, or frees the memory.
    func recycle(_ buffer: consuming RelayBuffer) {
        guard spare.count < Self.spareLimit else { return }
        spare.append(buffer.release())
    }

    /// Returns an empty pipe; nil if the kernel provides none, and the bytes are then copied.
    func pipe() -> SplicePipe? {
        if let ends = pipes.popLast() { return SplicePipe(owning: ends) }
        return SplicePipe()
    }

    /// Returns a pipe to the pool; closes it if it still holds bytes.
    func recycle(_ pipe: consuming SplicePipe) {
        guard pipe.isEmpty, pipes.count < Self.spareLimit else { return }
        pipes.append(pipe.release())
    }
}

/// A pipe that moves bytes from a TCP socket to a unix socket with splice(2), without copying.
///
/// Used in this direction only: from a unix socket to TCP, splice was measured to be slower than read and write.
struct SplicePipe: ~Copyable {
    typealias Ends = (reading: CInt, writing: CInt)

    /// An unprivileged user may have 64 pipes of this size in bytes; further pipes are smaller and work too (pipe(7)).
    private static let size: CInt = 1 << 20
    /// SPLICE_F_MOVE | SPLICE_F_NONBLOCK
    private static let flags: UInt32 = 3

    private let reading: Descriptor
    private let writing: Descriptor
    private var count = 0

    /// Opens a pipe; nil if the process is out of descriptors.
    init?() {
        var numbers: [CInt] = [-1, -1]
        guard pipe2(&numbers, O_NONBLOCK | O_CLOEXEC) == 0 else { return nil }
        self.init(owning: (numbers[0], numbers[1]))
        CLinux_set_pipe_size(numbers[1], Self.size)
    }

    /// Takes ownership of an empty pipe.
    init(owning ends: Ends) {
        reading = Descriptor(owning: ends.reading)
        writing = Descriptor(owning: ends.writing)
    }

    /// Blocks SIGPIPE on this thread.
    ///
    /// splice(2) to a closed socket raises SIGPIPE and has no flag like MSG_NOSIGNAL. The signal goes to the writing
    /// thread (signal(7)).
    static func blockSIGPIPE() {
        var signals = sigset_t()
        sigemptyset(&signals)
        sigaddset(&signals, SIGPIPE)
        pthread_sigmask(SIG_BLOCK, &signals, nil)
    }

    var isEmpty: Bool { count == 0 }

    /// Moves bytes from a socket into the pipe, which must be empty.
    ///
    /// - Returns: The number of bytes. At 0, a read tells if the socket is empty, at EOF, or unusable for splice.
    mutating func fill(from socket: CInt) -> Int {
        let moved = max(0, splice(socket, nil, writing.number, nil, Int(Self.size), Self.flags))
        count += moved
        return moved
    }

    /// Moves bytes from the pipe into a socket.
    ///
    /// - Returns: The number of bytes, or -1 with errno.
    mutating func drain(into socket: CInt) -> Int {
        let moved = splice(reading.number, nil, socket, nil, count, Self.flags)
        count -= max(0, moved)
        return moved
    }

    /// Gives up ownership of the empty pipe.
    consuming func release() -> Ends { (reading.release(), writing.release()) }
}

import CLinux
import Glibc
import SystemIO

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

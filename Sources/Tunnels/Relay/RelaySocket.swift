import CLinux
import Glibc
import SystemIO

/// One of the two sockets of a relayed connection, with its readiness.
///
/// epoll reports edges only, so the readiness is stored until a system call clears it.
struct RelaySocket: ~Copyable {
    /// The events that epoll reports for every socket.
    ///
    /// EPOLLOUT is left out. A unix socket reports it after each read of its peer (unix_write_space in af_unix.c), which
    /// would wake the event loop for nothing.
    static let reads = EPOLLIN.rawValue | EPOLLRDHUP.rawValue | EPOLLPRI.rawValue | EPOLLET.rawValue
    /// The events for a socket that connects, and for one that was full.
    static let readsAndWrites = reads | EPOLLOUT.rawValue

    private(set) var isReadable = false
    private(set) var isWritable = true
    /// Both directions are closed: no bytes can be sent, but bytes may be left to read.
    private(set) var isHungUp = false
    /// EOF was reported; bytes before it may be left to read.
    private(set) var isEnding = false
    /// Every byte up to EOF has been read.
    private(set) var isAtEnd = false
    /// A send failed: the peer is gone.
    private(set) var isBroken = false
    /// The errno of the failed read or send.
    private(set) var errorCode: CInt?

    let isTCP: Bool

    /// True if epoll reports when the socket accepts bytes again.
    private var reportsWrites = false
    private let descriptor: Descriptor
    /// True if reads must continue until EAGAIN.
    ///
    /// A short read usually means an empty queue, and the next edge reports new bytes. After EOF was reported, or if
    /// urgent data splits the queue (tcp(7)), a short read does not mean that.
    private var readsUntilEmpty = false

    /// Takes a connected socket and sets its options.
    init(_ descriptor: consuming Descriptor) {
        isTCP = Self.setOptions(descriptor.number)
        self.descriptor = descriptor
    }

    /// Takes a socket whose options are set. The sockets of a listener inherit its options.
    ///
    /// - Parameters:
    ///   - descriptor: The socket.
    ///   - isTCP: True if it is a TCP socket.
    ///   - isConnecting: True if the socket becomes writable when its connect has succeeded.
    init(connected descriptor: consuming Descriptor, isTCP: Bool, isConnecting: Bool = false) {
        isWritable = !isConnecting
        reportsWrites = isConnecting
        self.isTCP = isTCP
        self.descriptor = descriptor
    }

    /// Sets the options of a TCP socket, or those that a listener's accepted sockets inherit.
    ///
    /// - Returns: False, without effect, if the socket is not TCP.
    @discardableResult
    static func setOptions(_ number: CInt) -> Bool {
        SocketOption.setNoDelay(number) && SocketOption.setUrgentInline(number)
    }

    var number: CInt { descriptor.number }

    /// True if the peer has received every sent byte.
    ///
    /// A TCP socket that closes earlier leaves the rest to the kernel. The kernel gives up on a receiver that stalls
    /// for minutes (tcp_orphan_retries). EPOLLHUP is no substitute: a TCP socket reports it after both shutdowns, with
    /// bytes still in transit.
    var isFlushed: Bool { errorCode != nil || SocketOption.unsent(by: number) == 0 }

    /// Stores the readiness that epoll reported.
    mutating func handleEvents(_ events: UInt32) {
        let isOver = events & (EPOLLHUP.rawValue | EPOLLERR.rawValue) != 0
        if isOver || events & (EPOLLIN.rawValue | EPOLLRDHUP.rawValue | EPOLLPRI.rawValue) != 0 { isReadable = true }
        if isOver || events & EPOLLOUT.rawValue != 0 { isWritable = true }
        if isOver || events & (EPOLLRDHUP.rawValue | EPOLLPRI.rawValue) != 0 { readsUntilEmpty = true }
        if isOver || events & EPOLLRDHUP.rawValue != 0 { isEnding = true }
        if events & EPOLLHUP.rawValue != 0 { isHungUp = true }
        if events & EPOLLERR.rawValue != 0, errorCode == nil {
            // A reset may follow EOF, and no later read would report it.
            let code = SocketOption.pendingError(of: number)
            if code != 0 { errorCode = code }
        }
    }

    /// Returns true once, after the first send that did not fit. epoll must then report when the socket accepts bytes again.
    mutating func needsWriteReports() -> Bool {
        if isWritable || isBroken || reportsWrites { return false }
        reportsWrites = true
        return true
    }

    /// Reads once.
    ///
    /// - Returns: The number of bytes; 0 if none are available now or after EOF (`isAtEnd`).
    mutating func receive(into buffer: UnsafeMutableRawBufferPointer) -> Int {
        let count = recv(number, buffer.baseAddress, buffer.count, 0)
        if count > 0 {
            if count < buffer.count, !readsUntilEmpty { isReadable = false }
            return count
        }
        if count < 0, errno == EINTR { return 0 }
        isReadable = false
        if count < 0 {
            if errno == EAGAIN { return 0 }
            errorCode = errno
        }
        isAtEnd = true
        return 0
    }

    /// Peeks at the receive queue.
    ///
    /// - Returns: The result of recv(2).
    mutating func peek(into buffer: UnsafeMutableRawBufferPointer) -> Int {
        let count = recv(number, buffer.baseAddress, buffer.count, CInt(MSG_PEEK))
        if count > 0 { isReadable = true }
        return count
    }

    /// Reads and discards one chunk.
    ///
    /// - Returns: True if more bytes may be available.
    mutating func discard(into buffer: UnsafeMutableRawBufferPointer) -> Bool {
        _ = receive(into: buffer)
        return isReadable
    }

    /// Writes once.
    ///
    /// - Returns: The number of accepted bytes. A smaller number than given clears `isWritable`; an error sets
    ///   `isBroken`.
    mutating func send(_ bytes: UnsafeRawBufferPointer) -> Int {
        let count = Glibc.send(number, bytes.baseAddress, bytes.count, CInt(MSG_NOSIGNAL))
        if count < 0 { handleSendError(errno) } else if count < bytes.count { isWritable = false }
        return max(count, 0)
    }

    /// Writes once from a pipe.
    ///
    /// - Returns: The number of accepted bytes. At 0, `isWritable` is cleared or `isBroken` is set.
    mutating func send(_ pipe: inout SplicePipe) -> Int {
        let count = pipe.drain(into: number)
        if count < 0 { handleSendError(errno) }
        return max(count, 0)
    }

    private mutating func handleSendError(_ code: CInt) {
        if code == EAGAIN {
            isWritable = false
        } else if code != EINTR {
            isBroken = true
            if errorCode == nil { errorCode = code }
            // Bytes that arrived before the peer closed can still be read.
            isReadable = !isAtEnd
            readsUntilEmpty = true
        }
    }

    /// Shuts the write side down, which sends EOF.
    func shutdownWrite() { shutdown(number, CInt(SHUT_WR)) }

    /// Gives up ownership of the descriptor.
    consuming func release() -> Descriptor { descriptor }

    /// Makes the close send RST to a TCP peer.
    func makeAbortive() { descriptor.makeAbortive() }
}

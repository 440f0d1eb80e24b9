import CLinux
import Glibc
import SystemIO

/// One of the two sockets of a relayed connection, and what the kernel has said about it.
///
/// It is watched edge-triggered, so what epoll says once is remembered here until a call says otherwise.
struct RelaySocket: ~Copyable {
    /// What it is registered for, once and for its whole life.
    static let interest =
        EPOLLIN.rawValue | EPOLLOUT.rawValue | EPOLLRDHUP.rawValue | EPOLLPRI.rawValue | EPOLLET.rawValue

    private(set) var isReadable = false
    private(set) var isWritable = true
    /// Both directions are over: no byte can be sent any more, though some may be left to read.
    private(set) var isHungUp = false
    /// The end was announced, though bytes before it may be left to read.
    private(set) var isEnding = false
    /// Everything that came has been read, and no more will come.
    private(set) var isAtEnd = false
    /// Sending failed: the other side is gone.
    private(set) var isBroken = false
    /// What reading or sending failed with.
    private(set) var fault: CInt?

    let isTCP: Bool

    private let descriptor: Descriptor
    /// A read that returns less than asked for has usually emptied the queue, and the next edge tells of more. Not so once
    /// the end was announced, or where urgent data splits the queue (tcp(7)): then reading goes on until nothing is left.
    private var readsOn = false

    init(_ descriptor: consuming Descriptor) {
        isTCP = SocketOption.setNoDelay(descriptor.number)
        if isTCP { SocketOption.setUrgentInline(descriptor.number) }
        self.descriptor = descriptor
    }

    var number: CInt { descriptor.number }

    /// Everything sent has been taken by the other side. Closing a TCP socket earlier would leave the rest to the kernel,
    /// which gives up on a receiver that stalls for minutes (tcp_orphan_retries).
    ///
    /// EPOLLHUP does not say it: a TCP socket has it as soon as both sides have shut down, with bytes still on their way.
    var isFlushed: Bool { fault != nil || SocketOption.unsent(by: number) == 0 }

    /// Takes in what epoll reported.
    mutating func note(_ events: UInt32) {
        let isOver = events & (EPOLLHUP.rawValue | EPOLLERR.rawValue) != 0
        if isOver || events & (EPOLLIN.rawValue | EPOLLRDHUP.rawValue | EPOLLPRI.rawValue) != 0 { isReadable = true }
        if isOver || events & EPOLLOUT.rawValue != 0 { isWritable = true }
        if isOver || events & (EPOLLRDHUP.rawValue | EPOLLPRI.rawValue) != 0 { readsOn = true }
        if isOver || events & EPOLLRDHUP.rawValue != 0 { isEnding = true }
        if events & EPOLLHUP.rawValue != 0 { isHungUp = true }
        if events & EPOLLERR.rawValue != 0, fault == nil {
            // A reset may come after the end was read, when no more reading would tell.
            let code = SocketOption.pendingError(of: number)
            if code != 0 { fault = code }
        }
    }

    /// Reads once.
    ///
    /// - Returns: How many bytes came; 0 when there are none now, or none any more (`isAtEnd`).
    mutating func receive(into space: UnsafeMutableRawBufferPointer) -> Int {
        let count = recv(number, space.baseAddress, space.count, 0)
        if count > 0 {
            if count < space.count, !readsOn { isReadable = false }
            return count
        }
        if count < 0, errno == EINTR { return 0 }
        isReadable = false
        if count < 0 {
            if errno == EAGAIN { return 0 }
            fault = errno
        }
        isAtEnd = true
        return 0
    }

    /// Looks at what waits and leaves it there.
    ///
    /// - Returns: What recv(2) returns.
    func peek(into space: UnsafeMutableRawBufferPointer) -> Int {
        recv(number, space.baseAddress, space.count, CInt(MSG_PEEK))
    }

    /// Throws away what waits, a share at a time.
    ///
    /// - Returns: Whether there may be more.
    mutating func discard(into space: UnsafeMutableRawBufferPointer) -> Bool {
        _ = receive(into: space)
        return isReadable
    }

    /// Writes once.
    ///
    /// - Returns: How many bytes were taken; less than given makes it not writable, or broken.
    mutating func send(_ bytes: UnsafeRawBufferPointer) -> Int {
        let count = Glibc.send(number, bytes.baseAddress, bytes.count, CInt(MSG_NOSIGNAL))
        if count < 0 { noteRefusal(errno) } else if count < bytes.count { isWritable = false }
        return max(count, 0)
    }

    /// Writes once what is in a pipe.
    ///
    /// - Returns: How many bytes were taken; none makes it not writable, or broken.
    mutating func send(_ pipe: inout SplicePipe) -> Int {
        let count = pipe.drain(into: number)
        if count < 0 { noteRefusal(errno) }
        return max(count, 0)
    }

    private mutating func noteRefusal(_ code: CInt) {
        if code == EAGAIN {
            isWritable = false
        } else if code != EINTR {
            isBroken = true
            if fault == nil { fault = code }
            // What came before the other side went is still there to be read.
            isReadable = !isAtEnd
            readsOn = true
        }
    }

    /// Tells the other side that no more bytes follow.
    func finish() { shutdown(number, CInt(SHUT_WR)) }

    /// The coming close is seen as a failure by a TCP peer.
    func makeAbortive() { descriptor.makeAbortive() }
}

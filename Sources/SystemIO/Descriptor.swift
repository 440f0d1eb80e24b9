import Glibc

/// A file descriptor with exactly one owner, closed when the owner is done with it.
///
/// Noncopyable, so that the compiler proves what comments usually promise: nobody closes it twice (the number may belong
/// to somebody else by then), nobody forgets it.
package struct Descriptor: ~Copyable, Sendable {
    package let number: CInt

    /// Takes over an open descriptor.
    package init(owning number: CInt) { self.number = number }

    deinit { close(number) }

    /// Gives the descriptor away: the caller closes it.
    package consuming func release() -> CInt {
        let number = number
        discard self
        return number
    }

    /// Makes the coming close of a TCP socket abortive: the other end sees an error (RST) and not an orderly end, and what
    /// was not sent yet is thrown away. Nothing on other sockets.
    package func makeAbortive() {
        var abortive = linger(l_onoff: 1, l_linger: 0)
        setsockopt(number, SOL_SOCKET, SO_LINGER, &abortive, socklen_t(MemoryLayout<linger>.size))
    }

    /// Closes at once, and so that a TCP peer sees an error.
    package consuming func reset() { makeAbortive() }
}

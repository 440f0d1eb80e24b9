import CLinux
import Glibc

/// A file descriptor with exactly one owner, closed on deallocation.
///
/// The type is noncopyable, so the compiler prevents leaks and double closes. A double close could close a reused
/// number.
package struct Descriptor: ~Copyable, Sendable {
    package let number: CInt

    /// Takes ownership of an open descriptor.
    package init(owning number: CInt) { self.number = number }

    /// Opens a handle of a file (O_PATH of open(2)), which stays valid without the file's name. Nil if it fails.
    ///
    /// connect(2) reaches a socket through `/proc/self/fd`.
    package init?(handleOf path: String) {
        number = CLinux_open_handle(path)
        if number < 0 { return nil }
    }

    deinit { close(number) }

    /// Gives up ownership: the caller must close the descriptor.
    package consuming func release() -> CInt {
        let number = number
        discard self
        return number
    }

    /// Makes the close of a TCP socket send RST and discard unsent bytes. No effect on other sockets.
    package func makeAbortive() {
        var abortive = linger(l_onoff: 1, l_linger: 0)
        setsockopt(number, SOL_SOCKET, SO_LINGER, &abortive, socklen_t(MemoryLayout<linger>.size))
    }

    /// Closes the descriptor; a TCP peer receives RST.
    package consuming func reset() { makeAbortive() }
}

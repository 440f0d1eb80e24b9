package import Glibc

/// Why a socket could not be had; the description is a sentence that names the address.
package enum SocketError: Error, Hashable, Sendable {
    /// Somebody else listens there; the process is known of unix sockets only.
    case inUse(SocketAddress, by: pid_t? = nil)
    /// A file that is no socket is where the socket should be.
    case notASocket(path: String)
    /// No answer before the deadline.
    case timedOut(SocketAddress)
    /// The address cannot be written as the kernel wants it.
    case malformed(String)
    /// A system call failed; `on` is the thing it was about.
    case failed(call: String, on: String, code: CInt)

    /// The process or the machine is out of descriptors, of memory or of descriptors that epoll watches: the same call may work a moment later.
    package var isExhaustion: Bool {
        guard case .failed(let call, _, let code) = self else { return false }
        return [EMFILE, ENFILE, ENOBUFS, ENOMEM].contains(code) || call == "epoll_ctl" && code == ENOSPC
    }

    /// The kernel's words for an error number (strerror(3); thread-safe in glibc since 2.32).
    package static func words(for code: CInt) -> String { String(cString: strerror(code)) }
}

extension SocketError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .inUse(let address, let process):
            "\(address) is in use by \(process.map { "process \($0)" } ?? "another program"); "
                + "choose another address or stop that program"
        case .notASocket(let path):
            "\(path) exists and is not a socket; remove it or choose another path"
        case .timedOut(let address):
            "\(address) did not answer in time; check that it is switched on and in the same network"
        case .malformed(let text):
            "\(text) cannot be used as an address"
        case .failed("epoll_ctl", let thing, ENOSPC):
            "\(thing): epoll watches no more descriptors for this user; raise fs.epoll.max_user_watches"
        case .failed("epoll_ctl", let thing, EEXIST):
            "\(thing): another task waits for it; wait for a descriptor in one task at a time"
        case .failed(_, let thing, let code) where isExhaustion:
            "\(thing): \(Self.words(for: code)); raise the limit of open files (LimitNOFILE=, ulimit -n)"
        case .failed(let call, let thing, let code):
            "\(thing): \(Self.words(for: code)) (\(call))"
        }
    }
}

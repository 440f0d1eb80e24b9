import Glibc

/// The reason why a socket operation failed. The description names the address.
package enum SocketError: Error, Hashable, Sendable {
    /// Another process listens on the address; the PID is known for unix sockets only.
    case inUse(SocketAddress, by: Int32? = nil)
    /// The path exists and is not a socket.
    case notASocket(path: String)
    /// The peer did not answer before the deadline.
    case timedOut(SocketAddress)
    /// The address has no representation in the kernel's format.
    case malformed(String)
    /// A system call failed; `on` names its object.
    case failed(call: String, on: String, code: CInt)

    /// True if the process or the machine is out of descriptors, memory, or epoll watches. The same call may succeed
    /// later.
    package var isExhaustion: Bool {
        guard case .failed(let call, _, let code) = self else { return false }
        return [EMFILE, ENFILE, ENOBUFS, ENOMEM].contains(code) || call == "epoll_ctl" && code == ENOSPC
    }

    /// The message of the errno without the object; the description of any other error.
    package var reason: String {
        guard case .failed(_, _, let code) = self else { return description }
        return Self.message(for: code)
    }

    /// Throws the errno of a system call that returned a negative number.
    static func check(_ result: CInt, _ call: String, on thing: @autoclosure () -> String) throws(SocketError) {
        let code = errno
        if result < 0 { throw .failed(call: call, on: thing(), code: code) }
    }

    /// The message of an errno (strerror(3), thread-safe since glibc 2.32).
    package static func message(for code: CInt) -> String { String(cString: strerror(code)) }

    /// The message of an errno of connect(2).
    ///
    /// A route of the type `blackhole` fails with EINVAL, and one of the type `prohibit` with EACCES (`fib_props` in
    /// net/ipv4/fib_semantics.c of Linux).
    package static func message(forConnect code: CInt) -> String {
        switch code {
        case EINVAL: "a route of this machine leads nowhere (blackhole)"
        case EACCES: "a route or the firewall of this machine forbids it"
        default: message(for: code)
        }
    }
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
            "\(thing): \(Self.message(for: code)); raise the limit of open files (LimitNOFILE=, ulimit -n)"
        case .failed(let call, let thing, let code):
            "\(thing): \(Self.message(for: code)) (\(call))"
        }
    }
}

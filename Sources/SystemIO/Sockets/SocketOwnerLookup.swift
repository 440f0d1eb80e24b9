import CLinux
import Glibc
import Synchronization

/// Asks the kernel which user's a TCP socket of this machine is (sock_diag(7)).
///
/// One exact look-up takes 20 to 35 microseconds however many sockets there are, and the kernel answers from within the send:
/// nothing is waited for. `/proc/net/tcp` would have to be read as a whole, which takes milliseconds.
package final class SocketOwnerLookup: Sendable {
    package enum Answer: Hashable, Sendable {
        /// A connected socket that this user made.
        case user(UInt32)
        /// No process has it open any more. The kernel then says user 0, which is nobody's name here.
        case nobody
    }

    /// What the kernel says about a socket.
    private struct Record {
        let local: SocketAddress
        let remote: SocketAddress
        let state: UInt8
        let user: UInt32
        let inode: UInt32
    }

    private struct Question {
        var header = nlmsghdr()
        var request = inet_diag_req_v2()
    }

    private struct State: ~Copyable {
        /// Made at the first question, and anew after a failure.
        var socket: Descriptor?
        var sequence: UInt32 = 0
    }

    private static let thing = "the kernel's table of sockets (sock_diag)"
    /// ESTABLISHED, FIN_WAIT1 and FIN_WAIT2 (tcp_states.h): connected, or connected and half-closed by its owner. In
    /// SYN_SENT it would be somebody else's attempt on the addresses of a connection that is gone.
    private static let connected: Set<UInt8> = [1, 4, 5]

    private let state = Mutex(State())

    package init() {}

    /// Whose the socket is that has these two addresses.
    ///
    /// - Parameters:
    ///   - local: The socket's own address, which is the peer's as seen from its other end.
    ///   - remote: The address that it is connected to. That end is in this process, and open.
    /// - Returns: The user, or that nobody has it open.
    /// - Throws: `SocketError` when the kernel cannot be asked.
    package func owner(of local: SocketAddress, connectedTo remote: SocketAddress) throws -> Answer {
        let (local, remote) = (local.unmapped, remote.unmapped)
        guard let record = try ask(local, remote) else {
            // ENOENT says that there is no such socket, and also that tcp_diag is not in the kernel. Our own end is there.
            guard try ask(remote, local) != nil else {
                throw SocketError.failed(call: "sock_diag", on: Self.thing, code: ENOENT)
            }
            return .nobody
        }
        // Where there is no connection the kernel may answer with a listener on the same port.
        guard record.local == local, record.remote == remote, record.inode != 0, Self.connected.contains(record.state)
        else { return .nobody }
        return .user(record.user)
    }

    private func ask(_ local: SocketAddress, _ remote: SocketAddress) throws -> Record? {
        try state.withLock { state in
            do {
                state.sequence &+= 1
                let number: CInt
                if let socket = state.socket?.number {
                    number = socket
                } else {
                    number = CLinux_diag_socket()
                    guard number >= 0 else { throw SocketError.failed(call: "socket", on: Self.thing, code: errno) }
                    state.socket = Descriptor(owning: number)
                }
                var question = try Self.question(local, remote, state.sequence)
                let size = MemoryLayout<Question>.size
                guard send(number, &question, size, 0) == size else {
                    throw SocketError.failed(call: "send", on: Self.thing, code: errno)
                }
                return try Self.answer(from: number, to: state.sequence)
            } catch {
                state.socket = nil
                throw error
            }
        }
    }

    private static func question(
        _ local: SocketAddress,
        _ remote: SocketAddress,
        _ sequence: UInt32
    ) throws -> Question {
        var question = Question()
        question.header.nlmsg_len = UInt32(MemoryLayout<Question>.size)
        question.header.nlmsg_type = UInt16(SOCK_DIAG_BY_FAMILY)
        question.header.nlmsg_flags = UInt16(NLM_F_REQUEST)
        question.header.nlmsg_seq = sequence
        question.request.sdiag_family = UInt8(local.family)
        question.request.sdiag_protocol = UInt8(IPPROTO_TCP)
        question.request.idiag_states = .max
        question.request.id.idiag_sport = (local.port ?? 0).bigEndian
        question.request.id.idiag_dport = (remote.port ?? 0).bigEndian
        try withUnsafeMutableBytes(of: &question.request.id.idiag_src) { try write(local, to: $0) }
        try withUnsafeMutableBytes(of: &question.request.id.idiag_dst) { try write(remote, to: $0) }
        // A socket that was bound to an interface is found by that interface alone; loopback is 1 (LOOPBACK_IFINDEX).
        question.request.id.idiag_if = local.isLoopback ? 1 : 0
        question.request.id.idiag_cookie = (.max, .max)  // INET_DIAG_NOCOOKIE
        return question
    }

    private static func write(_ address: SocketAddress, to bytes: UnsafeMutableRawBufferPointer) throws {
        switch address {
        case .ipv4(let number, _): bytes.storeBytes(of: number.bigEndian, as: UInt32.self)
        case .ipv6(let number, _, _): bytes.storeBytes(of: number.bigEndian, as: UInt128.self)
        case .unix(let path): throw SocketError.malformed("the path \(path)")
        }
    }

    private static func answer(from number: CInt, to sequence: UInt32) throws -> Record? {
        try withUnsafeTemporaryAllocation(byteCount: 8_192, alignment: 8) { space in
            while true {
                let count = recv(number, space.baseAddress, space.count, CInt(MSG_DONTWAIT))
                if count < 0, errno == EINTR { continue }
                guard count >= MemoryLayout<nlmsghdr>.size else {
                    throw SocketError.failed(call: "recv", on: thing, code: count < 0 ? errno : EBADMSG)
                }
                let header = space.loadUnaligned(as: nlmsghdr.self)
                // An answer to an earlier question, whose reader gave up.
                guard header.nlmsg_seq == sequence else { continue }
                let content = UnsafeRawBufferPointer(rebasing: space[MemoryLayout<nlmsghdr>.size..<count])
                switch CInt(header.nlmsg_type) {
                case SOCK_DIAG_BY_FAMILY where content.count >= MemoryLayout<inet_diag_msg>.size:
                    return record(content.loadUnaligned(as: inet_diag_msg.self))
                case CInt(NLMSG_ERROR) where content.count >= MemoryLayout<CInt>.size:
                    let code = -content.loadUnaligned(as: CInt.self)
                    if code == ENOENT { return nil }
                    throw SocketError.failed(call: "sock_diag", on: thing, code: code)
                default:
                    throw SocketError.failed(call: "recv", on: thing, code: EBADMSG)
                }
            }
        }
    }

    private static func record(_ message: inet_diag_msg) -> Record {
        let id = message.id
        return Record(
            local: withUnsafeBytes(of: id.idiag_src) { address($0, message.idiag_family, id.idiag_sport) },
            remote: withUnsafeBytes(of: id.idiag_dst) { address($0, message.idiag_family, id.idiag_dport) },
            state: message.idiag_state,
            user: message.idiag_uid,
            inode: message.idiag_inode
        )
    }

    /// As the question has it: the client of an IPv4 address may be an IPv6 socket.
    private static func address(_ bytes: UnsafeRawBufferPointer, _ family: UInt8, _ port: UInt16) -> SocketAddress {
        let port = UInt16(bigEndian: port)
        guard CInt(family) == AF_INET6 else {
            return .ipv4(UInt32(bigEndian: bytes.loadUnaligned(as: UInt32.self)), port: port)
        }
        return SocketAddress.ipv6(UInt128(bigEndian: bytes.loadUnaligned(as: UInt128.self)), port: port, scope: 0)
            .unmapped
    }
}

import Glibc
import Model
import NIOCore
import SystemIO

/// The process at the other end of a unix socket, by the kernel's word; it has no say in it.
struct PeerCredentials: Sendable {
    /// struct ucred (unix(7)): process, user, group.
    typealias Credentials = (pid: Int32, user: UInt32, group: UInt32)

    /// SO_PEERGROUPS and SO_PEERPIDFD (asm-generic/socket.h), which Glibc's module leaves out.
    private static let groupsOption = SocketOptionName(59)
    private static let processOption = SocketOptionName(77)

    let user: UInt32
    let process: Int32
    let group: UInt32

    /// Nil where the kernel does not know, as on TCP, where it says -1.
    init?(of channel: any Channel) async {
        guard let credentials = try? await Self.credentials(of: channel)?.get(), credentials.user != .max else {
            return nil
        }
        user = credentials.user
        process = credentials.pid
        group = credentials.group
    }

    /// What the kernel says; the user is -1 where it does not know. Nil where it cannot be asked.
    static func credentials(of channel: any Channel) -> EventLoopFuture<Credentials>? {
        // NIO calls it unsafe because it trusts the type: `Credentials` is laid out as ucred is (unix(7)).
        (channel as? any SocketOptionProvider)?.unsafeGetSocketOption(
            level: SocketOptionLevel(SOL_SOCKET),
            name: SocketOptionName(SO_PEERCRED)
        )
    }

    /// For the audit log. The program's name is worth what /proc lets us see.
    var caller: AuditActor {
        var path = [CChar](repeating: 0, count: Int(PATH_MAX))
        let count = readlink("/proc/\(process)/exe", &path, path.count)
        let name = count > 0 ? String(decoding: path.prefix(count).map(UInt8.init(bitPattern:)), as: UTF8.self) : "?"
        return .process(uid: user, pid: process, executable: SanitizedText(name))
    }

    /// Whether it is in a group, as it was when it connected; the answer needs no name service.
    func isMember(of wanted: UInt32, on channel: any Channel) async -> Bool {
        if group == wanted { return true }
        guard let socket = channel as? any SocketOptionProvider else { return false }
        // NIO clears the memory first, so that what the kernel does not fill is group 0, which is never asked for here.
        let answer: EventLoopFuture<InlineArray<1_024, UInt32>> = socket.unsafeGetSocketOption(
            level: SocketOptionLevel(SOL_SOCKET),
            name: Self.groupsOption
        )
        guard let groups = try? await answer.get() else { return false }
        return groups.indices.contains { groups[$0] == wanted }
    }

    /// Whether that very process still runs; its number may be another one's by then.
    func liveness(on channel: any Channel) async -> @Sendable () -> Bool {
        let process = process
        guard let socket = channel as? any SocketOptionProvider else { return { false } }
        let answer: EventLoopFuture<CInt> = socket.unsafeGetSocketOption(
            level: SocketOptionLevel(SOL_SOCKET),
            name: Self.processOption
        )
        guard let number = try? await answer.get() else {
            // Before Linux 6.5: the number is the best there is.
            return { kill(process, 0) == 0 || errno == EPERM }
        }
        let handle = ProcessHandle(owning: number)
        return { handle.isRunning }
    }
}

/// A process by its descriptor (pidfd_open(2)), which stays that process's when the number is given to another one.
final class ProcessHandle: Sendable {
    private let descriptor: Descriptor

    init(owning number: CInt) { descriptor = Descriptor(owning: number) }

    /// It becomes readable when the process has ended.
    var isRunning: Bool {
        var question = pollfd(fd: descriptor.number, events: Int16(POLLIN), revents: 0)
        return poll(&question, 1, 0) == 0
    }
}

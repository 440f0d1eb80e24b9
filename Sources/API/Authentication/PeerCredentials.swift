import Glibc
import Model
import NIOCore
import SystemIO

/// The process at the other end of a Unix socket, as the kernel reports the process. The process cannot forge these
/// values.
struct PeerCredentials: Sendable {
    /// The layout of struct ucred (unix(7)): process, user, group.
    typealias Credentials = (pid: Int32, user: UInt32, group: UInt32)

    /// SO_PEERGROUPS and SO_PEERPIDFD (asm-generic/socket.h), which the Glibc module does not import.
    private static let groupsOption = SocketOptionName(59)
    private static let processOption = SocketOptionName(77)

    let user: UInt32
    let process: Int32
    let group: UInt32

    /// Returns nil if the kernel does not know the peer. For TCP, the kernel reports user -1.
    init?(of channel: any Channel) async {
        guard let credentials = try? await Self.credentials(of: channel)?.get(), credentials.user != .max else {
            return nil
        }
        user = credentials.user
        process = credentials.pid
        group = credentials.group
    }

    /// Asks the kernel for the credentials of the peer. An unknown user is -1. Returns nil for a channel without socket
    /// options.
    static func credentials(of channel: any Channel) -> EventLoopFuture<Credentials>? {
        // NIO calls this unsafe because the type is not checked. `Credentials` has the layout of ucred (unix(7)).
        (channel as? any SocketOptionProvider)?.unsafeGetSocketOption(
            level: SocketOptionLevel(SOL_SOCKET),
            name: SocketOptionName(SO_PEERCRED)
        )
    }

    /// The peer for the audit log. The name of the program comes from /proc, and is `?` if /proc does not show the
    /// name.
    var auditActor: AuditActor {
        var path = [CChar](repeating: 0, count: Int(PATH_MAX))
        let count = readlink("/proc/\(process)/exe", &path, path.count)
        let name = count > 0 ? String(decoding: path.prefix(count).map(UInt8.init(bitPattern:)), as: UTF8.self) : "?"
        return .process(uid: user, pid: process, executable: SanitizedText(name))
    }

    /// Returns whether the process was a member of the group when the process connected. No name service is needed.
    func isMember(of wanted: UInt32, on channel: any Channel) async -> Bool {
        if group == wanted { return true }
        guard let socket = channel as? any SocketOptionProvider else { return false }
        // NIO zeroes the memory first. Entries that the kernel does not fill are group 0, and group 0 is never looked
        // up.
        let reply: EventLoopFuture<InlineArray<1_024, UInt32>> = socket.unsafeGetSocketOption(
            level: SocketOptionLevel(SOL_SOCKET),
            name: Self.groupsOption
        )
        guard let groups = try? await reply.get() else { return false }
        return groups.indices.contains { groups[$0] == wanted }
    }

    /// Returns a check that this process still runs. The check is not fooled by a reused process ID.
    func processLiveness(on channel: any Channel) async -> @Sendable () -> Bool {
        let process = process
        guard let socket = channel as? any SocketOptionProvider else { return { false } }
        let reply: EventLoopFuture<CInt> = socket.unsafeGetSocketOption(
            level: SocketOptionLevel(SOL_SOCKET),
            name: Self.processOption
        )
        guard let number = try? await reply.get() else {
            // Before Linux 6.5, only the process ID is available.
            return { kill(process, 0) == 0 || errno == EPERM }
        }
        let handle = ProcessHandle(owning: number)
        return { handle.isRunning }
    }
}

/// A process by its descriptor (pidfd_open(2)). The descriptor stays with the process even if the process ID is reused.
final class ProcessHandle: Sendable {
    private let descriptor: Descriptor

    init(owning number: CInt) { descriptor = Descriptor(owning: number) }

    /// The descriptor becomes readable when the process has ended.
    var isRunning: Bool {
        var descriptors = pollfd(fd: descriptor.number, events: Int16(POLLIN), revents: 0)
        return poll(&descriptors, 1, 0) == 0
    }
}

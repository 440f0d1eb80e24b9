import Glibc
import NIOCore

/// Who is at the other end of a unix socket.
enum Caller {
    /// struct ucred (unix(7)): process, user, group.
    private typealias Credentials = (pid: Int32, user: UInt32, group: UInt32)

    /// The user of the process that connected, by the kernel's word (SO_PEERCRED); the caller has no say in it.
    ///
    /// Nil where the kernel does not know, as on TCP, where it says -1.
    static func user(of channel: any Channel) async -> UInt32? {
        guard let socket = channel as? any SocketOptionProvider else { return nil }
        // NIO calls it unsafe because it trusts the type: `Credentials` is laid out as ucred is (unix(7)).
        let answer: EventLoopFuture<Credentials> = socket.unsafeGetSocketOption(
            level: SocketOptionLevel(SOL_SOCKET),
            name: SocketOptionName(SO_PEERCRED)
        )
        guard let credentials = try? await answer.get(), credentials.user != .max else {
            return nil
        }
        return credentials.user
    }
}

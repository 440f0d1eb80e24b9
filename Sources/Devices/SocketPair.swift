import CLinux
import CUsbmuxd
import Glibc
import SystemIO

/// Two ends of one channel that keeps packets apart (socketpair(2)).
final class SocketPair: Sendable {
    let near: Descriptor
    let far: Descriptor

    /// Nil when the process has no more descriptors; errno says so.
    init?() {
        var numbers: [CInt] = [-1, -1]
        guard socketpair(AF_UNIX, CInt(SOCK_SEQPACKET.rawValue | SOCK_CLOEXEC.rawValue), 0, &numbers) == 0 else {
            return nil
        }
        near = Descriptor(owning: numbers[0])
        far = Descriptor(owning: numbers[1])
    }

    /// The descriptor that was passed in at the far end; nil when none was.
    func take() -> Descriptor? {
        var number: CInt = -1
        let count = CUsbmuxd_take(near.number, &number)
        return count > 0 && number >= 0 ? Descriptor(owning: number) : nil
    }
}

import Glibc
import SystemIO

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

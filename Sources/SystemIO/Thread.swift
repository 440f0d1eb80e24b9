import CLinux
import Glibc

/// Starts a thread of our own, for loops that block in the kernel and so must not sit in Swift's pool.
///
/// - Parameters:
///   - name: At most 15 bytes are shown by `ps -L` (pthread_setname_np(3)).
///   - body: What the thread does; the thread ends with it.
package func startThread(named name: String, _ body: @escaping @Sendable () -> Void) {
    final class Box: Sendable {
        let name: String
        let body: @Sendable () -> Void
        init(_ name: String, _ body: @escaping @Sendable () -> Void) {
            self.name = name
            self.body = body
        }
    }
    var thread = pthread_t()
    let box = Unmanaged.passRetained(Box(name, body))
    let started = pthread_create(
        &thread,
        nil,
        { argument in
            guard let argument else { return nil }
            let box = Unmanaged<Box>.fromOpaque(argument).takeRetainedValue()
            CLinux_set_thread_name(String(box.name.prefix(15)))
            box.body()
            return nil
        },
        box.toOpaque()
    )
    precondition(started == 0, "no thread could be started: errno \(started)")
    pthread_detach(thread)
}

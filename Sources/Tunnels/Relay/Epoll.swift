import CLinux
import Glibc
import SystemIO

/// The epoll instance of a relay thread.
struct Epoll: ~Copyable {
    private let descriptor: Descriptor

    init() {
        let number = epoll_create1(CInt(EPOLL_CLOEXEC))
        precondition(number >= 0, "epoll_create1 failed: errno \(errno)")
        descriptor = Descriptor(owning: number)
    }

    /// Registers a descriptor until its close. Existing readiness is reported too, also as an edge (epoll(7)).
    ///
    /// - Returns: False, with errno, if the kernel watches no more descriptors.
    @discardableResult
    func watch(_ number: CInt, events interest: UInt32, token: UInt64) -> Bool {
        control(EPOLL_CTL_ADD, number, interest, token)
    }

    /// Changes the events of a registered descriptor. Existing readiness is reported too.
    func change(_ number: CInt, events interest: UInt32, token: UInt64) {
        _ = control(EPOLL_CTL_MOD, number, interest, token)
    }

    private func control(_ operation: CInt, _ number: CInt, _ interest: UInt32, _ token: UInt64) -> Bool {
        var event = epoll_event()
        event.events = interest
        event.data.u64 = token
        return epoll_ctl(descriptor.number, operation, number, &event) == 0
    }

    /// Ends the registration of a descriptor that stays open.
    func unwatch(_ number: CInt) { epoll_ctl(descriptor.number, EPOLL_CTL_DEL, number, nil) }

    /// Waits for events.
    ///
    /// - Parameters:
    ///   - events: Receives the events.
    ///   - timeout: The timeout in milliseconds; -1 for none.
    /// - Returns: The number of events.
    func wait(_ events: UnsafeMutableBufferPointer<epoll_event>, timeout: CInt) -> Int {
        guard let first = events.baseAddress else { return 0 }
        return Int(max(epoll_wait(descriptor.number, first, CInt(events.count), timeout), 0))
    }
}

import CLinux
import Glibc
import TestSupport
import SystemIO

/// The phone's one thread: accepts, converses as usbmuxd, and echoes. Everything here belongs to it.
final class PhoneThread {
    /// What a client that comes in through a listener has reached.
    enum Entrance: Hashable, Sendable {
        case mux
        case app(App)
    }

    private enum Role {
        case entrance(Entrance)
        case conversation(MuxConversation)
        case echo
    }

    private let apps: [UInt16: App]
    private let epoll: Descriptor
    private var roles: [CInt: Role] = [:]
    private var buffer = [UInt8](repeating: 0, count: 64 << 10)

    /// - Parameters:
    ///   - apps: By port of the phone.
    ///   - entrances: Listening descriptors, owned by somebody who outlives the thread.
    /// - Throws: `RigError` when the kernel gives no epoll.
    init(apps: [UInt16: App], entrances: [(CInt, Entrance)]) throws {
        self.apps = apps
        let number = epoll_create1(CInt(EPOLL_CLOEXEC))
        guard number >= 0 else { throw RigError(call: "epoll_create1") }
        epoll = Descriptor(owning: number)
        for (descriptor, entrance) in entrances { watch(descriptor, as: .entrance(entrance)) }
    }

    func run() -> Never {
        var events = [epoll_event](repeating: epoll_event(), count: 256)
        while true {
            let count = epoll_wait(epoll.number, &events, CInt(events.count), -1)
            for event in events.prefix(Int(max(count, 0))) { serve(event.data.fd) }
        }
    }

    private func serve(_ descriptor: CInt) {
        switch roles[descriptor] {
        case .entrance(let entrance): accept(at: descriptor, entrance)
        case .conversation(var conversation): converse(descriptor, &conversation)
        case .echo: echo(descriptor)
        case nil: break
        }
    }

    private func accept(at listener: CInt, _ entrance: Entrance) {
        while true {
            let client = CLinux_accept(listener)
            guard client >= 0 else { return }
            switch entrance {
            case .mux: watch(client, as: .conversation(MuxConversation(udid: Phone.udid, apps: apps)))
            case .app(let app): open(app, client)
            }
        }
    }

    private func open(_ app: App, _ client: CInt) {
        SocketOption.setNoDelay(client)
        guard app != .echo else { return watch(client, as: .echo) }
        startThread(named: "bench-\(app)") { AppStream(app, over: Descriptor(owning: client)).serve() }
    }

    private func converse(_ client: CInt, _ conversation: inout MuxConversation) {
        let count = recv(client, &buffer, buffer.count, 0)
        guard count > 0 else { return drop(client) }
        conversation.append(buffer[..<count])
        while true {
            switch conversation.next() {
            case .wait:
                roles[client] = .conversation(conversation)
                return
            case .answer(let bytes):
                guard Stream.send(bytes[...], to: client) else { return drop(client) }
            case .open(let app, let answer):
                guard Stream.send(answer[...], to: client) else { return drop(client) }
                forget(client)
                return open(app, client)
            case .leave:
                return drop(client)
            }
        }
    }

    /// Only messages much smaller than a socket's buffer come here, so a write never has to wait.
    private func echo(_ client: CInt) {
        let count = recv(client, &buffer, buffer.count, 0)
        guard count > 0, Stream.send(buffer[..<count], to: client) else { return drop(client) }
    }

    private func watch(_ descriptor: CInt, as role: Role) {
        var event = epoll_event()
        event.events = EPOLLIN.rawValue
        event.data.fd = descriptor
        roles[descriptor] = role
        epoll_ctl(epoll.number, EPOLL_CTL_ADD, descriptor, &event)
    }

    private func forget(_ descriptor: CInt) {
        roles[descriptor] = nil
        epoll_ctl(epoll.number, EPOLL_CTL_DEL, descriptor, nil)
    }

    private func drop(_ descriptor: CInt) {
        forget(descriptor)
        close(descriptor)
    }
}

import CLinux
import Glibc
import SystemIO
import TestSupport

/// The phone's thread: accepts clients, speaks usbmuxd's protocol, and echoes. All members belong to this thread.
final class PhoneThread {
    /// The service behind a listener.
    enum ListenerKind: Hashable, Sendable {
        case mux
        case app(App)
    }

    private enum Role {
        case listenerKind(ListenerKind)
        case conversation(MuxConversation)
        case echo
    }

    private let apps: [UInt16: App]
    private let epoll: Descriptor
    private var roles: [CInt: Role] = [:]
    private var buffer = [UInt8](repeating: 0, count: 64 << 10)

    /// - Parameters:
    ///   - apps: The apps by port of the phone.
    ///   - listenerKinds: Listening descriptors, which must stay open until the thread ends.
    /// - Throws: `TestSupportError` if epoll_create1(2) fails.
    init(apps: [UInt16: App], listenerKinds: [(CInt, ListenerKind)]) throws {
        self.apps = apps
        let number = epoll_create1(CInt(EPOLL_CLOEXEC))
        guard number >= 0 else { throw TestSupportError(call: "epoll_create1") }
        epoll = Descriptor(owning: number)
        for (descriptor, listenerKind) in listenerKinds { watch(descriptor, as: .listenerKind(listenerKind)) }
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
        case .listenerKind(let listenerKind): accept(at: descriptor, listenerKind)
        case .conversation(var conversation): converse(descriptor, &conversation)
        case .echo: echo(descriptor)
        case nil: break
        }
    }

    private func accept(at listener: CInt, _ listenerKind: ListenerKind) {
        while true {
            let client = CLinux_accept(listener)
            guard client >= 0 else { return }
            switch listenerKind {
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
                guard BlockingStream.send(bytes[...], to: client) else { return drop(client) }
            case .open(let app, let answer):
                guard BlockingStream.send(answer[...], to: client) else { return drop(client) }
                forget(client)
                return open(app, client)
            case .leave:
                return drop(client)
            }
        }
    }

    /// Echoes small messages. They fit into the socket's buffer, so a write never blocks.
    private func echo(_ client: CInt) {
        let count = recv(client, &buffer, buffer.count, 0)
        guard count > 0, BlockingStream.send(buffer[..<count], to: client) else { return drop(client) }
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

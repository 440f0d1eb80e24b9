import CLinux
import Glibc
import TestSupport
import SystemIO
import Synchronization

@testable import Devices

/// A fake usbmuxd with scripted behaviour on a unix socket; each client is served on a thread.
final class FakeUsbmuxd: Sendable {
    private struct State {
        var isOpen = true
        var clients: Set<CInt> = []
        var accepted = 0
    }

    let path: String
    private let listener: CInt
    private let state = Mutex(State())

    /// Takes over the path from a previous owner, as usbmuxd does. `serve` gets a blocking socket, which is closed when
    /// `serve` returns. `pause` is the time before the fake accepts another client.
    init(
        at path: String,
        backlog: CInt = 128,
        pause: Duration = .zero,
        serve: @escaping @Sendable (FakeClient) -> Void
    ) throws {
        self.path = path
        unlink(path)
        let listener = socket(AF_UNIX, CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        self.listener = listener
        let status = try SocketAddress.unix(path: path).withRaw { bind(listener, $0, $1) }
        guard status == 0, listen(listener, backlog) == 0 else {
            throw TestSupportError("no socket at \(path): errno \(errno)")
        }
        startThread(named: "fake-usbmuxd") { [self] in accept(pause, serve) }
    }

    convenience init(
        in scratch: ScratchFolder,
        backlog: CInt = 128,
        pause: Duration = .zero,
        serve: @escaping @Sendable (FakeClient) -> Void
    ) throws {
        try self.init(at: scratch.file("usbmuxd"), backlog: backlog, pause: pause, serve: serve)
        scratch.atEnd { [self] in stop() }
    }

    var address: UsbmuxAddress { .unix(path: path) }
    var accepted: Int { state.withLock { $0.accepted } }

    /// Ends every client's stream and stops listening; the socket file stays.
    func stop() {
        state.withLock { state in
            guard state.isOpen else { return }
            state.isOpen = false
            for client in state.clients { shutdown(client, CInt(SHUT_RDWR)) }
            shutdown(listener, CInt(SHUT_RDWR))
        }
    }

    private func accept(_ pause: Duration, _ serve: @escaping @Sendable (FakeClient) -> Void) {
        while true {
            usleep(UInt32(pause / .microseconds(1)))
            let client = accept4(listener, nil, nil, CInt(SOCK_CLOEXEC.rawValue))
            guard client >= 0 else { break }
            let isOpen = state.withLock { state in
                state.accepted += 1
                if state.isOpen { state.clients.insert(client) }
                return state.isOpen
            }
            guard isOpen else {
                close(client)
                break
            }
            startThread(named: "fake-client") { [self] in
                serve(FakeClient(number: client))
                state.withLock { state in
                    state.clients.remove(client)
                    _ = close(client)
                }
            }
        }
        close(listener)
    }
}

/// The fake's end of one connection.
struct FakeClient: Sendable {
    let number: CInt

    /// The name of the next request; nil if the client closed the connection.
    func request() -> String? {
        let text = requestText() ?? ""
        return ["Listen", "ListDevices", "Connect", "ReadBUID"].first { text.contains("<string>\($0)</string>") }
    }

    /// The next request as a property list.
    func requestText() -> String? {
        var decoder = UsbmuxFrameDecoder()
        while true {
            if let message = try? decoder.next() {
                guard case .propertyList(let bytes) = message.body else { return nil }
                return String(decoding: bytes, as: UTF8.self)
            }
            var buffer = [UInt8](repeating: 0, count: decoder.bytesNeeded)
            let count = recv(number, &buffer, buffer.count, 0)
            guard count > 0 else { return nil }
            decoder.append(buffer[..<count])
        }
    }

    func send(_ bytes: [UInt8]) { _ = TestSupport.Stream.send(bytes[...], to: number) }

    /// Keeps the connection open until the client closes it.
    func waitForEnd() {
        var byte: UInt8 = 0
        while recv(number, &byte, 1, 0) > 0 {}
    }

    /// Replies like usbmuxd with these devices connected. After a Connect the device sends `welcome`.
    func behave(phones: [(deviceID: Int, udid: String)], connect: UInt32 = 0, welcome: String = "") {
        let records = phones.map { Samples.attached($0.deviceID, $0.udid) }
        switch request() {
        case "Listen":
            send(Samples.result(0) + records.flatMap { Samples.frame($0, tag: 0) })
        case "ListDevices":
            send(Samples.frame(Samples.list(records)))
        case "ReadBUID":
            send(Samples.frame("<dict><key>BUID</key><string>30142955-4440</string></dict>"))
        case "Connect":
            send(Samples.result(connect) + Array(welcome.utf8))
        default:
            return
        }
        waitForEnd()
    }
}

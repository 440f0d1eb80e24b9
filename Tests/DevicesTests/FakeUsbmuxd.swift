import Glibc
import TestSupport

@testable import Devices

/// A fake usbmuxd with scripted behaviour on a unix socket; each client is served on a thread.
final class FakeUsbmuxd: Sendable {
    let path: String
    private let server: LoopbackServer

    /// Takes over the path from a previous owner, as usbmuxd does. `serve` gets a blocking socket, which is closed when
    /// `serve` returns. `pause` is the time before the fake accepts another client.
    init(
        at path: String,
        backlog: CInt = 128,
        pause: Duration = .zero,
        serve: @escaping @Sendable (FakeClient) -> Void
    ) throws {
        self.path = path
        server = try LoopbackServer(unixPath: path, backlog: backlog, pause: pause) { serve(FakeClient(number: $0)) }
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

    var address: ServerAddress { .unix(path: path) }
    var accepted: Int { server.accepted }

    /// Ends every client's stream and stops listening; the socket file stays.
    func stop() { server.stop() }
}

/// The fake's end of one connection.
struct FakeClient: Sendable {
    let number: CInt

    /// The name of the next request; nil if the client closed the connection.
    func request() -> String? { requestBody().flatMap(MuxMessage.requestType) }

    /// The next request as a property list.
    func requestText() -> String? { requestBody().map { String(decoding: $0, as: UTF8.self) } }

    private func requestBody() -> [UInt8]? {
        guard let header = receive(MuxMessage.headerSize) else { return nil }
        return receive(MuxMessage.length(of: header) - MuxMessage.headerSize)
    }

    private func receive(_ count: Int) -> [UInt8]? {
        guard count > 0 else { return nil }
        var buffer = [UInt8](repeating: 0, count: count)
        return recv(number, &buffer, count, CInt(MSG_WAITALL)) == count ? buffer : nil
    }

    func send(_ bytes: [UInt8]) { _ = BlockingStream.send(bytes[...], to: number) }

    /// Keeps the connection open until the client closes it.
    func waitForEnd() {
        var byte: UInt8 = 0
        while recv(number, &byte, 1, 0) > 0 {}
    }

    /// Replies like usbmuxd with these devices connected. After a Connect the device sends `welcome`.
    func behave(phones: [(deviceID: Int, udid: String)], connect: UInt32 = 0, welcome: String = "") {
        let records = phones.map { MuxMessage.attached($0.deviceID, $0.udid) }
        switch request() {
        case "Listen":
            send(MuxMessage.result(0) + records.flatMap { MuxMessage.propertyList($0, tag: 0) })
        case "ListDevices":
            send(MuxMessage.propertyList(MuxMessage.list(records)))
        case "Connect":
            send(MuxMessage.result(connect) + Array(welcome.utf8))
        default:
            return
        }
        waitForEnd()
    }
}

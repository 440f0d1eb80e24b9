import Glibc
import TestSupport

@testable import Devices

/// A fake adb server with scripted behaviour on a unix socket; each connection has its own thread.
final class FakeADBServer: Sendable {
    let address: ServerAddress
    private let server: LoopbackServer

    /// `serve` gets each connection, which is closed when it returns. `host:version` is answered already.
    init(
        version: @escaping @Sendable () -> String = { "0029" },
        in scratch: ScratchFolder,
        serve: @escaping @Sendable (Connection) -> Void
    ) throws {
        let path = scratch.file("fake-adb")
        address = .unix(path: path)
        server = try LoopbackServer(unixPath: path, backlog: 128, pause: .zero) { number in
            let connection = Connection(number: number)
            guard let request = connection.request() else { return }
            guard request == "host:version" else { return serve(Connection(number: number, first: request)) }
            connection.send("OKAY0004\(version())")
        }
        scratch.atEnd { [self] in server.stop() }
    }

    var openConnections: Int { server.openConnections }

    struct Connection: Sendable {
        let number: CInt
        /// The first request.
        var first = ""

        /// Reads the next request; nil if the client closed the connection.
        func request() -> String? {
            guard let digits = receive(4), let length = Int(digits, radix: 16) else { return nil }
            return receive(length)
        }

        private func receive(_ count: Int) -> String? {
            var buffer = [UInt8](repeating: 0, count: count)
            guard recv(number, &buffer, count, CInt(MSG_WAITALL)) == count else { return nil }
            return String(decoding: buffer, as: UTF8.self)
        }

        @discardableResult
        func send(_ text: String) -> Bool { BlockingStream.send(Array(text.utf8)[...], to: number) }

        /// Sends a text with its length.
        @discardableResult
        func sendText(_ text: String) -> Bool {
            let digits = String(text.utf8.count, radix: 16)
            return send(String(repeating: "0", count: 4 - digits.count) + digits + text)
        }

        func waitForEnd() {
            var byte: UInt8 = 0
            while recv(number, &byte, 1, 0) > 0 {}
        }
    }
}

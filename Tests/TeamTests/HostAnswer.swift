import Client
import Model
import NIOCore
import Synchronization

@testable import Team

/// A response of another host with a body of one part.
final class HostAnswer: HostResponse {
    let status: Int
    let headers: [(name: String, value: String)]
    private let body: Mutex<ByteBuffer?>

    init(_ status: Int, _ body: String, type: String = "application/json") {
        self.status = status
        headers = [("Content-Type", type)]
        self.body = Mutex(ByteBuffer(string: body))
    }

    var isRead: Bool { body.withLock { $0 == nil } }

    func next() async throws -> ByteBuffer? {
        body.withLock { body in
            defer { body = nil }
            return body
        }
    }

    func close() {}
}

/// A connection without TLS.
struct NoSecurity: ClientTransportSecurity {
    func secure(_ channel: any Channel, pin: KeyPin) throws {}
}

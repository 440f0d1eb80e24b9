import CLinux
import Glibc

extension LoopbackServer {
    /// Starts an HTTP server with one request for each connection.
    ///
    /// - Parameters:
    ///   - address: The address to listen on.
    ///   - port: The port; 0 selects a free one.
    ///   - scratch: Stops the server at its end.
    ///   - answer: Returns the JSON for a path; nil for status 404.
    /// - Throws: `TestSupportError` if the port is taken.
    package convenience init(
        address: String = "127.0.0.1",
        port: UInt16 = 0,
        in scratch: ScratchFolder?,
        http answer: @escaping @Sendable (_ path: String) -> String?
    ) throws {
        try self.init(address: address, port: port, in: scratch) { connection in
            var buffer = [UInt8](repeating: 0, count: 8_192)
            let count = recv(connection, &buffer, buffer.count, 0)
            let words = String(decoding: buffer[..<max(0, count)], as: UTF8.self).split(separator: " ")
            guard words.count > 1 else { return }
            let body = answer(String(words[1]))
            let head = "HTTP/1.1 \(body == nil ? "404 Not Found" : "200 OK")\r\nContent-Type: application/json\r\n"
            let reply = "\(head)Content-Length: \(body?.utf8.count ?? 0)\r\n\r\n\(body ?? "")"
            _ = reply.withCString { send(connection, $0, strlen($0), CInt(MSG_NOSIGNAL)) }
        }
    }
}

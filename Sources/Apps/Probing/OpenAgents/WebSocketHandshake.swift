import Crypto
import FoundationEssentials

/// The client's side of the WebSocket handshake (RFC 6455, section 4.1), without extensions and subprotocols.
struct WebSocketHandshake {
    /// Appended to the key before the digest (section 1.3).
    private static let suffix = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

    private let key = Data((0..<16).map { _ in UInt8.random(in: 0...255) }).base64EncodedString()

    var request: AppHTTPRequest {
        AppHTTPRequest(
            "GET",
            "/",
            headers: [
                ("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13"),
                ("Sec-WebSocket-Key", key),
            ]
        )
    }

    /// Checks the response.
    ///
    /// - Throws: `ExchangeError.invalid`.
    func check(_ head: HTTPResponseHead) throws(ExchangeError) {
        guard head.status == 101 else { throw .invalid("it did not switch to the WebSocket protocol") }
        let digest = Data(Insecure.SHA1.hash(data: Data((key + Self.suffix).utf8))).base64EncodedString()
        let connection = head.values(of: "connection").flatMap { $0.lowercased().split(separator: ",") }
        guard head["sec-websocket-accept"] == digest, head["upgrade"]?.lowercased() == "websocket",
            connection.contains(where: { $0.filter { $0 != " " && $0 != "\t" } == "upgrade" }),
            // The request offers neither extensions nor subprotocols, so the response must not select any.
            head.values(of: "sec-websocket-extensions").isEmpty, head.values(of: "sec-websocket-protocol").isEmpty
        else { throw .invalid("its response to the WebSocket handshake violates RFC 6455") }
    }
}

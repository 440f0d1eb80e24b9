import NIOCore
import NIOHTTP1
import NIOWebSocket

/// The client's side of the WebSocket handshake (RFC 6455, section 4.1), without extensions and subprotocols.
enum WebSocketUpgrade {
    typealias WebSocket = NIOAsyncChannel<WebSocketFrame, WebSocketFrame>

    /// The body of a close frame with the status 1000 (RFC 6455, section 7.4.1).
    static var normalClosure: ByteBuffer { ByteBuffer(integer: UInt16(1_000)) }

    /// Adds the handlers that send the request and check the response.
    ///
    /// - Returns: The WebSocket. Fails with `ProbeError.notOpenAgents` if the server refuses it or answers wrongly.
    static func start(on channel: any Channel, to host: String) throws -> EventLoopFuture<WebSocket> {
        var head = HTTPRequestHead(version: .http1_1, method: .GET, uri: "/")
        head.headers.add(name: "Host", value: host)
        let upgrader = StrictUpgrader(
            upgrader: NIOTypedWebSocketClientUpgrader(
                maxFrameSize: OpenAgentsHandshake.byteLimit,
                // The error must reach the caller instead of being answered on the connection.
                enableAutomaticErrorHandling: false,
                upgradePipelineHandler: { channel, _ in
                    channel.eventLoop.makeCompletedFuture { try WebSocket(wrappingChannelSynchronously: channel) }
                }
            )
        )
        var configuration = NIOUpgradableHTTPClientPipelineConfiguration(
            upgradeConfiguration: NIOTypedHTTPClientUpgradeConfiguration<WebSocket>(
                upgradeRequestHead: head,
                upgraders: [upgrader],
                notUpgradingCompletionHandler: { channel in
                    channel.eventLoop.makeFailedFuture(
                        ProbeError.notOpenAgents("it did not switch to the WebSocket protocol")
                    )
                }
            )
        )
        // The server may send frames together with its response.
        configuration.leftOverBytesStrategy = .forwardBytes
        let upgrade = try channel.pipeline.syncOperations.configureUpgradableHTTPClientPipeline(
            configuration: configuration
        )
        return upgrade.flatMapErrorThrowing { error in
            switch error {
            case is NIOHTTPClientUpgradeError:
                throw ProbeError.notOpenAgents("its response to the WebSocket handshake violates RFC 6455")
            case let error as HTTPParserError where error != .invalidEOFState:
                throw ProbeError.notOpenAgents("its response is not HTTP")
            default: throw error
            }
        }
    }
}

/// NIO's check of the accept key, and the further rules for the response of RFC 6455, section 4.1.
private struct StrictUpgrader: NIOTypedHTTPClientProtocolUpgrader {
    let upgrader: NIOTypedWebSocketClientUpgrader<WebSocketUpgrade.WebSocket>

    var supportedProtocol: String { upgrader.supportedProtocol }
    var requiredUpgradeHeaders: [String] { upgrader.requiredUpgradeHeaders }

    func addCustom(upgradeRequestHeaders headers: inout HTTPHeaders) {
        upgrader.addCustom(upgradeRequestHeaders: &headers)
    }

    func shouldAllowUpgrade(upgradeResponse response: HTTPResponseHead) -> Bool {
        // The request offers neither extensions nor subprotocols, so the response must not select any.
        response.headers[canonicalForm: "connection"].contains { $0.lowercased() == "upgrade" }
            && !response.headers.contains(name: "Sec-WebSocket-Extensions")
            && !response.headers.contains(name: "Sec-WebSocket-Protocol")
            && upgrader.shouldAllowUpgrade(upgradeResponse: response)
    }

    func upgrade(
        channel: any Channel,
        upgradeResponse response: HTTPResponseHead
    ) -> EventLoopFuture<WebSocketUpgrade.WebSocket> {
        upgrader.upgrade(channel: channel, upgradeResponse: response)
    }
}

extension WebSocketFrame {
    /// A whole message or control frame from a client, with a new random mask (RFC 6455, section 5.3).
    static func masked(_ opcode: WebSocketOpcode, _ data: ByteBuffer) -> WebSocketFrame {
        WebSocketFrame(fin: true, opcode: opcode, maskKey: .random(), data: data)
    }
}

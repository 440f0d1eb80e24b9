import AccessControl
import Model

/// Carries messages to an app's server, and the server's messages back.
protocol UpstreamTransport: Sendable {
    /// Sends a message and returns the response. The handler receives the server's own messages meanwhile.
    ///
    /// - Throws: `AppError`, `CancellationError`.
    func exchange(
        _ message: UpstreamMessage,
        by routes: [AuthorizedRoute],
        handler: UpstreamMessageHandler
    ) async throws -> UpstreamResponse

    /// Returns whether the transport can be used over one of the routes without a new handshake.
    func isUsable(over routes: [AuthorizedRoute]) async -> Bool
}

/// One message to an app's server, with the properties of its delivery.
struct UpstreamMessage: Sendable {
    /// The message of JSON-RPC; nil opens the stream of the server's own messages.
    let json: JSON?
    /// The method; empty for a response, and for the stream.
    let method: String
    let params: JSONObject
    /// The ID of a request; nil for a message without a response.
    let id: RPCID?
    /// The HTTP headers of the protocol: version, session, method and name.
    var headers: [(name: String, value: String)] = []
    /// The trace context of the headers.
    var trace: TraceContext?
    var limits = ResponseLimits.handshake
    /// The timeout that the caller asked for; nil without one.
    var callerTimeout: Duration?
    /// The permissions that are checked again with the last byte; nil for Patchbay's own messages.
    var admission: DeliveryAuthorization?
    /// Indicates whether a pooled connection may be used.
    ///
    /// The app may be closing a pooled connection at that moment, which makes the delivery uncertain. Messages that
    /// must not be delivered twice therefore use a new connection.
    var mayReuse = true
    /// Indicates whether it is the DELETE that ends a session.
    var isSessionDelete = false
    /// Called when the server has opened its stream.
    var opened: (@Sendable () -> Void)?
    /// Receives the notifications that belong to this message.
    var notify: (@Sendable (RPCNotification) -> Void)?

    /// Creates a request, or a notification without an ID.
    ///
    /// - Parameters:
    ///   - method: The method.
    ///   - params: The parameters.
    ///   - number: The ID of a request.
    ///   - server: The receiver; nil in a handshake, before the server is known.
    init(_ method: String, _ params: JSONObject = [:], id number: JSONNumber? = nil, to server: ServerInfo? = nil) {
        (self.method, self.params, id) = (method, params, number.map(RPCID.number))
        json = .object(RPCMessage.object(method, params.members.isEmpty ? nil : params, id: id))
        headers = server?.headers(for: method, params) ?? []
    }

    /// Creates a response to a request of the server; nil opens the stream of the server's own messages.
    init(response: RPCMessage?, to server: ServerInfo) {
        (method, params, id) = ("", [:], nil)
        json = response?.json
        headers = server.headers(for: "", [:])
    }
}

package import Model

/// A request to an MCP server, independent of the protocol version.
package struct MCPRequest: Sendable {
    package let method: String
    /// The parameters without the protocol's own members of `_meta`, `progressToken` and the trace context.
    package private(set) var params: JSONObject
    /// The conversions of arguments that the client sent in another type, for the audit log, such as `text to integer`.
    private(set) var conversions: [String] = []
    /// The client capabilities that an app can use. A client that has some, and no `clientRequester`, accepts an
    /// `input_required` result and repeats its request with the response (MCP 2026-07-28).
    package var capabilities: JSONObject
    /// The lowest level of log messages that the principal wants (names of RFC 5424); nil if it wants none.
    package var logLevel: String?
    /// Sends requests of the app to the client; nil if the client accepts none, or accepts them as results only.
    package var clientRequester: ClientRequester?
    /// The program of the client, as it calls itself; nil if it gives no name.
    package var agent: SanitizedText?
    /// The trace contexts of the client. `_meta` of the parameters does not have them.
    package var trace = CallTrace()
    /// True for the broker's own look at a screen. It changes nothing, so it needs no lease. It is not audited, because
    /// the live screen would fill the log.
    var isObservation = false
    /// The wait time for an unreachable app; nil for the default.
    let wait: Duration?
    /// The maximum image edge in the result of a tool, in pixels. Models scale larger images down to the default anyway.
    /// 0 keeps the original, as a link.
    var maxPixels = 1_568
    /// The format of the images in the result of a tool; nil for any.
    var imageFormat: ImageFormat?
    /// The maximum total duration; nil for the default.
    package private(set) var timeout: Duration?
    /// Forwards `notifications/progress` and `notifications/message` to the client while the request runs; nil if the
    /// client asked for none.
    ///
    /// The transport adds the progress token.
    package var notify: (@Sendable (RPCNotification) -> Void)?

    package init(
        _ method: String,
        _ params: JSONObject = [:],
        capabilities: JSONObject = [:],
        logLevel: String? = nil,
        clientRequester: ClientRequester? = nil,
        wait: Duration? = nil,
        timeout: Duration? = nil,
        notify: (@Sendable (RPCNotification) -> Void)? = nil
    ) {
        self.method = method
        self.params = params
        self.capabilities = capabilities
        self.logLevel = logLevel
        self.clientRequester = clientRequester
        self.wait = wait
        self.timeout = timeout
        self.notify = notify
    }

    /// Returns a copy with this timeout.
    func with(timeout: Duration) -> MCPRequest {
        var request = self
        request.timeout = timeout
        return request
    }

    /// Returns a copy with the rest of the timeout after this time.
    func after(_ elapsed: Duration) -> MCPRequest { timeout.map { with(timeout: max(.zero, $0 - elapsed)) } ?? self }

    /// Returns a copy with these parameters.
    func with(_ params: JSONObject) -> MCPRequest {
        var request = self
        request.params = params
        return request
    }

    /// Returns a copy with converted arguments.
    func with(arguments: JSONObject, conversions: [String] = []) -> MCPRequest {
        var request = with(params.with("arguments", .object(arguments)))
        request.conversions += conversions
        return request
    }
}

extension MCPRequest {
    /// The result member with the entries, by list method.
    package static let listMembers = [
        "tools/list": "tools", "resources/list": "resources", "resources/templates/list": "resourceTemplates",
        "prompts/list": "prompts",
    ]

    /// Rejects every cursor, for a list with a single page.
    package func rejectCursor() throws(RPCError) {
        guard params["cursor"] == nil || params["cursor"] == .null else {
            throw .invalidParams("unknown cursor")
        }
    }
}

/// Properties of requests to an app.
extension MCPRequest {
    /// The subject of an audit entry: the tool's name, otherwise the method.
    var subject: String { tool ?? method }

    /// The name of the tool, if the request is a tool call.
    package var tool: String? { method == "tools/call" ? params["name"]?.string : nil }
}

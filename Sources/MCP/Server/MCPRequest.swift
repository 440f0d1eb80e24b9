package import JSON

/// A request to a server, without what belongs to the era it came in.
package struct MCPRequest: Sendable {
    package let method: String
    /// Without the protocol's own members of `_meta`; a `progressToken` is taken out too.
    package private(set) var params: JSONObject
    /// What the caller can do for an app that asks back.
    package let capabilities: JSONObject
    /// The gravest log messages that the caller can do without are those below this level (RFC 5424's names); nil for one
    /// that wants none.
    package let logLevel: String?
    /// How an app asks the caller something while the request runs; nil where it cannot.
    package let wayBack: ClientRequester?
    /// Whether the caller takes a question as a result and asks again with the answer (2026-07-28).
    package let mayAskAgain: Bool
    /// How long it may take in all; nil for as long as is usual.
    package private(set) var patience: Duration?
    /// Passes on what is told while the request runs: `notifications/progress` (without its token, which the door adds) and
    /// `notifications/message`. Nil where the caller asked for none.
    package let notify: (@Sendable (RPCNotification) -> Void)?

    package init(
        _ method: String,
        _ params: JSONObject = [:],
        capabilities: JSONObject = [:],
        logLevel: String? = nil,
        wayBack: ClientRequester? = nil,
        mayAskAgain: Bool = false,
        patience: Duration? = nil,
        notify: (@Sendable (RPCNotification) -> Void)? = nil
    ) {
        self.method = method
        self.params = params
        self.capabilities = capabilities
        self.logLevel = logLevel
        self.wayBack = wayBack
        self.mayAskAgain = mayAskAgain
        self.patience = patience
        self.notify = notify
    }

    /// The same, for which the app has so long.
    func with(patience: Duration) -> MCPRequest {
        var request = self
        request.patience = patience
        return request
    }

    /// The same with other parameters.
    func with(_ params: JSONObject) -> MCPRequest {
        var request = self
        request.params = params
        return request
    }
}

extension MCPRequest {
    /// For a list that has one page: asked for another one, it has none.
    func checkPage() throws(RPCError) {
        guard params["cursor"] == nil || params["cursor"] == .null else {
            throw .invalidParams("no list has that cursor")
        }
    }
}

/// What counts when it is an app that is asked.
extension MCPRequest {
    /// What it is for the audit log: a tool's name, else the method.
    var subject: String { tool ?? method }

    /// Whether the app may get it twice; only what it says of a tool allows that of a call.
    func mayRepeat(_ traits: ToolAnnotations) -> Bool { tool == nil || traits.mayRepeat }

    /// The tool that it calls, if it calls one.
    var tool: String? { method == "tools/call" ? params["name"]?.string : nil }
}

/// Screenshots as JPEG: as PNG a phone's screen is several times as heavy, on the wire and for the app's main thread, and where
/// it is too heavy for an agent it is made a JPEG here anyway.
extension MCPRequest {
    private static let screenshot = "screenshot"
    private static let form = "format"
    private static let jpeg: JSON = "jpeg"

    /// It asks for a picture and leaves open in which form.
    var isOpenToJPEG: Bool {
        guard tool == Self.screenshot, let arguments = params["arguments"] else { return tool == Self.screenshot }
        // A null is a choice, too: what it means is the app's business.
        return arguments.object.map { $0[Self.form] == nil } ?? false
    }

    /// The same, asking for a JPEG.
    var askingForJPEG: MCPRequest {
        var arguments = params["arguments"]?.object ?? [:]
        arguments[Self.form] = Self.jpeg
        var params = params
        params["arguments"] = .object(arguments)
        return with(params)
    }

    /// Whether a tool says that it gives pictures as JPEG to whoever asks for that.
    static func offersJPEG(_ tool: JSONObject) -> Bool {
        guard tool["name"]?.string == screenshot, let format = tool["inputSchema"]?["properties"]?[form] else {
            return false
        }
        if let words = format["enum"]?.array { return words.contains(jpeg) }
        return format["description"]?.string?.lowercased().contains("jpeg") ?? false
    }
}

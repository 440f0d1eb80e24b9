package import Model

/// The requests that an MCP client accepts while its own request runs.
///
/// A client declares them in its handshake or, since 2026-07-28, with each request.
package struct ClientCapabilities: OptionSet, Hashable, Sendable {
    package let rawValue: UInt8

    package init(rawValue: UInt8) { self.rawValue = rawValue }

    package static let roots = ClientCapabilities(rawValue: 1)
    static let sampling = ClientCapabilities(rawValue: 2)
    static let samplingTools = ClientCapabilities(rawValue: 4)
    static let samplingContext = ClientCapabilities(rawValue: 8)
    static let elicitationForm = ClientCapabilities(rawValue: 16)
    static let elicitationURL = ClientCapabilities(rawValue: 32)

    private static let all: ClientCapabilities = [
        .roots, .sampling, .samplingTools, .samplingContext, .elicitationForm, .elicitationURL,
    ]

    /// Reads the capabilities that apps can use through the broker. Tasks and experimental capabilities are not
    /// forwarded.
    package init(_ capabilities: JSONObject) {
        var found: ClientCapabilities = capabilities["roots"]?.object == nil ? [] : .roots
        if let sampling = capabilities["sampling"]?.object {
            found.insert(.sampling)
            if sampling["tools"]?.object != nil { found.insert(.samplingTools) }
            if sampling["context"]?.object != nil { found.insert(.samplingContext) }
        }
        if let elicitation = capabilities["elicitation"]?.object {
            let hasURL = elicitation["url"]?.object != nil
            if hasURL { found.insert(.elicitationURL) }
            // Before 2025-11-25, form elicitation was the only kind and was not declared separately.
            if !hasURL || elicitation["form"]?.object != nil { found.insert(.elicitationForm) }
        }
        self = found
    }

    /// The capabilities as a `ClientCapabilities` object of the protocol, for the handshake with an app.
    package var json: JSONObject {
        var capabilities = JSONObject()
        if contains(.roots) { capabilities["roots"] = [:] }
        if contains(.sampling) {
            var sampling = JSONObject()
            if contains(.samplingTools) { sampling["tools"] = [:] }
            if contains(.samplingContext) { sampling["context"] = [:] }
            capabilities["sampling"] = .object(sampling)
        }
        if contains(.elicitationURL) {
            capabilities["elicitation"] = contains(.elicitationForm) ? ["form": [:], "url": [:]] : ["url": [:]]
        } else if contains(.elicitationForm) {
            capabilities["elicitation"] = [:]
        }
        return capabilities
    }

    /// Returns whether the client declared that it accepts this request.
    package func allow(_ method: String, _ params: JSONObject?) -> Bool {
        switch method {
        case "roots/list": contains(.roots)
        case "sampling/createMessage":
            contains(params?["tools"] == nil && params?["toolChoice"] == nil ? .sampling : [.sampling, .samplingTools])
        case "elicitation/create": contains(params?["mode"] == "url" ? .elicitationURL : .elicitationForm)
        default: false
        }
    }

    /// The capabilities as hexadecimal text for a session ID; empty if there are none.
    package var text: String { isEmpty ? "" : String(rawValue, radix: 16) }

    package init?(text: some StringProtocol) {
        guard let value = UInt8(text, radix: 16),
            ClientCapabilities.all.isSuperset(of: ClientCapabilities(rawValue: value))
        else {
            return nil
        }
        self.init(rawValue: value)
    }
}

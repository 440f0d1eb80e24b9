import JSON

/// What a client can be asked while a request of its own runs, as it said in its handshake or says with the request.
package struct ClientCapabilities: OptionSet, Hashable, Sendable {
    package let rawValue: UInt8

    package init(rawValue: UInt8) { self.rawValue = rawValue }

    static let roots = ClientCapabilities(rawValue: 1)
    static let sampling = ClientCapabilities(rawValue: 2)
    static let samplingTools = ClientCapabilities(rawValue: 4)
    static let samplingContext = ClientCapabilities(rawValue: 8)
    static let forms = ClientCapabilities(rawValue: 16)
    static let addresses = ClientCapabilities(rawValue: 32)

    private static let all: ClientCapabilities = [
        .roots, .sampling, .samplingTools, .samplingContext, .forms, .addresses,
    ]

    /// What of a client's capabilities apps can make use of through the broker; tasks and experiments are not carried.
    init(_ capabilities: JSONObject) {
        var found: ClientCapabilities = capabilities["roots"]?.object == nil ? [] : .roots
        if let sampling = capabilities["sampling"]?.object {
            found.insert(.sampling)
            if sampling["tools"]?.object != nil { found.insert(.samplingTools) }
            if sampling["context"]?.object != nil { found.insert(.samplingContext) }
        }
        if let elicitation = capabilities["elicitation"]?.object {
            let hasAddresses = elicitation["url"]?.object != nil
            if hasAddresses { found.insert(.addresses) }
            // Until 2025-11-25 there was nothing but forms, and no word for it.
            if !hasAddresses || elicitation["form"]?.object != nil { found.insert(.forms) }
        }
        self = found
    }

    /// The same in the words of the protocol, for an app.
    var capabilities: JSONObject {
        var capabilities = JSONObject()
        if contains(.roots) { capabilities["roots"] = [:] }
        if contains(.sampling) {
            var sampling = JSONObject()
            if contains(.samplingTools) { sampling["tools"] = [:] }
            if contains(.samplingContext) { sampling["context"] = [:] }
            capabilities["sampling"] = .object(sampling)
        }
        if contains(.addresses) {
            capabilities["elicitation"] = contains(.forms) ? ["form": [:], "url": [:]] : ["url": [:]]
        } else if contains(.forms) {
            capabilities["elicitation"] = [:]
        }
        return capabilities
    }

    /// Whether it said that it answers this.
    func allow(_ method: String, _ params: JSONObject?) -> Bool {
        switch method {
        case "roots/list": contains(.roots)
        case "sampling/createMessage":
            contains(params?["tools"] == nil && params?["toolChoice"] == nil ? .sampling : [.sampling, .samplingTools])
        case "elicitation/create": contains(params?["mode"] == "url" ? .addresses : .forms)
        default: false
        }
    }

    /// For a session's id; nothing where there is nothing.
    var text: String { isEmpty ? "" : String(rawValue, radix: 16) }

    init?(text: some StringProtocol) {
        guard let value = UInt8(text, radix: 16),
            ClientCapabilities.all.isSuperset(of: ClientCapabilities(rawValue: value))
        else {
            return nil
        }
        self.init(rawValue: value)
    }
}

/// How grave a log message is (RFC 5424, section 6.2.1, by MCP's names).
enum LogLevel: Int, Comparable {
    case debug, info, notice, warning, error, critical, alert, emergency

    private static let names = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]

    init?(_ name: String) {
        guard let place = Self.names.firstIndex(of: name) else { return nil }
        self.init(rawValue: place)
    }

    var name: String { Self.names[rawValue] }

    static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}

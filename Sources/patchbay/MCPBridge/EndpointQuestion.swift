import Model

/// The question which phone a client means (MCP elicitation), and the reading of its answer.
struct EndpointQuestion {
    private static let field = "endpoint"
    /// The name of the question in a result of MCP 2026-07-28, and the state that the client returns with the answer.
    static let name = "patchbay-endpoint"
    static let requestState = "patchbay-mcp-endpoint"

    let app: String
    let candidates: [Endpoint]
    /// The chosen endpoint, if the broker does not list it any more.
    var gone: EndpointID?

    private var reason: String {
        let places = "\(SanitizedText(app)) runs on \(Formatting.count(candidates.count, "phone"))"
        return gone.map { "the chosen endpoint \($0) is gone; \(places)" } ?? places
    }

    /// The parameters of `elicitation/create`: a form with one list.
    func params(isStateless: Bool) -> JSON {
        var params: JSONObject = [
            "message": .string("\(reason). Which one shall be used?"),
            "requestedSchema": [
                "type": "object",
                "properties": [
                    "endpoint": [
                        "type": "string", "title": "Phone",
                        "enum": .array(candidates.map { .string($0.id.text) }),
                        "enumNames": .array(candidates.map { .string($0.choiceLine) }),
                    ]
                ],
                "required": ["endpoint"],
            ],
        ]
        if isStateless { params["mode"] = "form" }
        return .object(params)
    }

    /// The question as a request of the bridge to a client with a session.
    func request(id: JSON) -> JSON {
        ["jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": params(isStateless: false)]
    }

    /// The question as the result of a request of MCP 2026-07-28, which the client repeats with the answer.
    func inputRequired(by id: JSON) -> JSON {
        let question: JSON = ["method": "elicitation/create", "params": params(isStateless: true)]
        return [
            "jsonrpc": "2.0", "id": id,
            "result": [
                "resultType": "input_required", "requestState": .string(Self.requestState),
                "inputRequests": .object(JSONObject([.init(name: Self.name, value: question)])),
            ],
        ]
    }

    /// Returns the chosen endpoint in an `ElicitResult`; nil if the client declined, or named no candidate.
    func choice(in answer: JSON?) -> EndpointID? {
        guard answer?["action"] == "accept" else { return nil }
        let text = answer?["content"]?[Self.field]?.string
        return candidates.first { $0.id.text == text }?.id
    }

    /// The failure of a call that needs a choice.
    var failure: CLIError {
        CLIError.usage(
            "\(reason), and none is chosen",
            candidates: candidates.map(\.choiceLine),
            try: "call the tool \(BridgeTool.choose) with one of these IDs; --endpoint ID in the client's "
                + "configuration chooses for every session"
        )
    }

    /// Returns whether a client with these capabilities shows forms. Before 2025-11-25 a form was the only kind.
    static func isSupported(by capabilities: JSON?) -> Bool {
        guard let elicitation = capabilities?["elicitation"], elicitation.object != nil else { return false }
        return elicitation["form"] != nil || elicitation["url"] == nil
    }
}

import Client
import FoundationEssentials
import Model

/// The JSON-RPC responses that the bridge creates itself.
enum LocalResponse {
    /// The response to a line that is not JSON: Parse error (JSON-RPC 2.0, section 5.1).
    static func unreadable(_ error: JSONError) -> JSON {
        ["jsonrpc": "2.0", "error": ["code": -32_700, "message": .string(error.description)]]
    }

    /// The response to an invalid message: Invalid Request (JSON-RPC 2.0, section 5.1).
    ///
    /// The response has no `id`, because MCP forbids a null ID.
    static func invalid(_ fault: String) -> JSON {
        ["jsonrpc": "2.0", "error": ["code": -32_600, "message": .string(fault)]]
    }

    /// The response to a request that the broker did not process.
    static func failure(_ error: CLIError, to id: JSON?) -> JSON {
        let message = ([error.message] + error.candidates).joined(separator: ", ")
        return failed([message, error.hint].compactMap(\.self).joined(separator: "; "), id)
    }

    /// The response to a request after its stream ended without a response.
    static func none(to id: JSON) -> JSON { failed("the broker closed the response stream without a response", id) }

    /// The response to a request with an unknown result, because the connection to the broker was lost. The request may
    /// have been in the broker's queue.
    static func lost(_ message: ClientMessage, id: JSON?) -> JSON {
        let text =
            "result unknown: the connection to the broker was lost before the response. The app may have executed the "
            + "call, or may not have received it; check the state before you call again"
        guard message.method == "tools/call", let id else { return failed(text, id) }
        var result: JSONObject = ["content": [["type": "text", "text": .string(text)]], "isError": true]
        if message.revision != nil { result["resultType"] = "complete" }
        return ["jsonrpc": "2.0", "id": id, "result": .object(result)]
    }

    /// Converts an HTTP error response to a JSON-RPC error response.
    static func refusal(_ status: Int, _ body: [UInt8], to id: JSON?) -> JSON {
        if let json = try? JSON(parsing: body), json["jsonrpc"] == "2.0", var response = json.object {
            if let id { response["id"] = id }
            return .object(response)
        }
        return failed(reason(status, body), id)
    }

    /// Returns the reason in an HTTP error response.
    static func reason(_ status: Int, _ body: [UInt8]) -> String {
        if let problem = problem(body) {
            let next = problem.hint.flatMap { problem.detail.contains($0) ? nil : $0 }
            return [problem.detail, next].compactMap(\.self).joined(separator: "; ")
        }
        let message = (try? JSON(parsing: body))?["error"]?["message"]?.string
        return message.map { SanitizedText($0, limit: 500).text } ?? "the broker responded with status \(status)"
    }

    /// Returns whether a response rejects the session ID of its request.
    static func isUnknownSession(_ status: Int, _ body: [UInt8]) -> Bool {
        guard status == 404, let json = try? JSON(parsing: body) else { return false }
        return json["error"]?["message"]?.string?.hasPrefix("unknown session ID") == true
    }

    /// Decodes a problem document (RFC 9457); nil for any other body.
    static func problem(_ body: [UInt8]) -> Problem? {
        try? JSONCoding.decoder().decode(Problem.self, from: Data(body))
    }

    private static func failed(_ text: String, _ id: JSON?) -> JSON {
        var response: JSONObject = ["jsonrpc": "2.0"]
        response["id"] = id
        response["error"] = ["code": -32_603, "message": .string(text)]
        return .object(response)
    }
}

import Client
import FoundationEssentials
import JSON
import Model

/// The answers that come from here because none came from the broker.
enum LocalResponse {
    /// JSON-RPC 2.0, section 5.1: it could not be read.
    static func unreadable(_ error: JSONError) -> JSON {
        ["jsonrpc": "2.0", "error": ["code": -32_700, "message": .string(error.description)]]
    }

    /// JSON-RPC 2.0, section 5.1: it is no request. MCP has no null id, so there is none.
    static func invalid(_ fault: String) -> JSON {
        ["jsonrpc": "2.0", "error": ["code": -32_600, "message": .string(fault)]]
    }

    /// The broker cannot be asked, or makes no sense.
    static func failure(_ error: ClientError, to id: JSON?) -> JSON {
        failed([error.description, error.remedy].compactMap(\.self).joined(separator: "; "), id)
    }

    static func none(to id: JSON) -> JSON { failed("the broker has ended its answer without one", id) }

    /// It was written, and the broker went away before it had answered: nobody knows what became of it.
    static func lost(_ message: ClientMessage, id: JSON?) -> JSON {
        let text =
            "delivered, result unknown: the broker went away after it had got this; look at the state before you "
            + "call again"
        guard message.method == "tools/call", let id else { return failed(text, id) }
        var result: JSONObject = ["content": [["type": "text", "text": .string(text)]], "isError": true]
        if message.revision != nil { result["resultType"] = "complete" }
        return ["jsonrpc": "2.0", "id": id, "result": .object(result)]
    }

    /// What a refusal says, as the answer to this request; nil for what has no id that an answer could name.
    static func refusal(_ status: Int, _ body: [UInt8], to id: JSON?) -> JSON {
        if let json = try? JSON(parsing: body), json["jsonrpc"] == "2.0", var answer = json.object {
            if let id { answer["id"] = id }
            return .object(answer)
        }
        return failed(reason(status, body), id)
    }

    /// Why the broker took something not.
    static func reason(_ status: Int, _ body: [UInt8]) -> String {
        if let problem = problem(body) {
            let next = problem.next.flatMap { problem.detail.contains($0) ? nil : $0 }
            return [problem.detail, next].compactMap(\.self).joined(separator: "; ")
        }
        let said = (try? JSON(parsing: body))?["error"]?["message"]?.string
        return said.map { SanitizedText($0, limit: 500).text } ?? "the broker answers with status \(status)"
    }

    static func problem(_ body: [UInt8]) -> Problem? {
        try? JSONCoding.decoder().decode(Problem.self, from: Data(body))
    }

    private static func failed(_ text: String, _ id: JSON?) -> JSON {
        var answer: JSONObject = ["jsonrpc": "2.0"]
        answer["id"] = id
        answer["error"] = ["code": -32_603, "message": .string(text)]
        return .object(answer)
    }
}

import Client
import FoundationEssentials
import JSON
import Model

/// The answers that come from here because none came from the broker.
enum AgentAnswer {
    /// JSON-RPC 2.0, section 5.1: it could not be read.
    static func unreadable(_ error: JSONError) -> JSON {
        ["jsonrpc": "2.0", "error": ["code": -32_700, "message": .string(error.description)]]
    }

    /// The broker cannot be asked, or makes no sense.
    static func failure(_ error: ClientError, to id: JSON) -> JSON {
        failed([error.description, error.remedy].compactMap(\.self).joined(separator: "; "), id)
    }

    static func none(to id: JSON) -> JSON { failed("the broker has ended its answer without one", id) }

    /// It was written, and the broker went away before it had answered: nobody knows what became of it.
    static func lost(_ message: AgentMessage, id: JSON) -> JSON {
        let text =
            "delivered, result unknown: the broker went away after it had got this; look at the state before you "
            + "call again"
        guard message.method == "tools/call" else { return failed(text, id) }
        var result: JSONObject = ["content": [["type": "text", "text": .string(text)]], "isError": true]
        if message.revision != nil { result["resultType"] = "complete" }
        return ["jsonrpc": "2.0", "id": id, "result": .object(result)]
    }

    /// What a refusal says, as the answer to this request.
    static func refusal(_ status: Int, _ body: [UInt8], to id: JSON) -> JSON {
        if let json = try? JSON(parsing: body), json["jsonrpc"] == "2.0", var answer = json.object {
            answer["id"] = id
            return .object(answer)
        }
        guard let problem = problem(body) else { return failed("the broker answers with status \(status)", id) }
        return failed([problem.detail, problem.next].compactMap(\.self).joined(separator: "; "), id)
    }

    static func problem(_ body: [UInt8]) -> Problem? { try? Wire.decoder().decode(Problem.self, from: Data(body)) }

    private static func failed(_ text: String, _ id: JSON) -> JSON {
        ["jsonrpc": "2.0", "id": id, "error": ["code": -32_603, "message": .string(text)]]
    }
}

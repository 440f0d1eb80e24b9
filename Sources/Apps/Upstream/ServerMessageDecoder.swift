import Model

/// Decodes the messages of a server: JSON with repairs, without the session token, as JSON-RPC.
///
/// Each text is read once. What is checked, recorded and passed on comes from the same value.
struct ServerMessageDecoder: Sendable {
    let redactor: TokenRedactor
    /// Records a deviation that was repaired.
    let record: @Sendable (ServerDeviation.Kind) -> Void

    /// Decodes a text with one message, or with a JSON-RPC batch (2025-03-26). An invalid message of a batch is dropped.
    ///
    /// - Throws: `AppError.invalidResponse`.
    func messages(in bytes: ArraySlice<UInt8>) async throws(AppError) -> [RPCMessage] {
        let (json, repairs): (JSON, JSONRepairs)
        do throws(JSONError) {
            (json, repairs) = try await JSON.repair(bytes) { [redactor] in (redactor.redact($0.json), $0.repairs) }
        } catch {
            throw .invalidResponse("invalid JSON (\(error.reason.rawValue), at byte \(error.offset))")
        }
        let note = repairs.isEmpty ? nil : note(on: repairs)
        do throws(RPCError) {
            guard let batch = json.array else { return [try message(json, note)] }
            let messages = batch.compactMap { (json: JSON) -> RPCMessage? in try? message(json, note) }
            return try messages.isEmpty
                ? batch.prefix(1).map { json throws(RPCError) in try message(json, note) } : messages
        } catch {
            throw .invalidResponse("invalid JSON-RPC (\(error.message))")
        }
    }

    /// Returns whether a text is meant as a message, and not as output of a program or of a proxy.
    static func isMessage(_ bytes: some Collection<UInt8>) -> Bool {
        let start = bytes.drop { $0 <= 0x20 || [0xEF, 0xBB, 0xBF].contains($0) }.prefix(2)
        return start.first == UInt8(ascii: "{") || start.elementsEqual("[{".utf8)
    }

    /// Reads a message. Completes it where JSON-RPC leaves no doubt.
    private func message(_ json: JSON, _ note: String?) throws(RPCError) -> RPCMessage {
        guard let received = json.object else { return try RPCMessage(json) }
        var object = received
        if object["jsonrpc"] != "2.0", object["id"] != nil || object["method"] != nil { object["jsonrpc"] = "2.0" }
        if object["method"] != nil {
            // Jackson and PHP write these for what is left out.
            if object["params"]?.isNull == true || object["params"] == [] { object["params"] = nil }
            if object["id"]?.isNull == true { object["id"] = nil }
        } else if let id = object["id"], let number = id.int ?? id.string.flatMap(Int.init), id.text != "\(number)" {
            // Patchbay's own requests have whole numbers.
            object["id"] = .number(JSONNumber(number))
            record(id.string == nil ? .invalidRPC : .textIDs)
        }
        if object.members.count != received.members.count || object["jsonrpc"] != received["jsonrpc"] {
            record(.invalidRPC)
        }
        let message = try RPCMessage(.object(object))
        guard let note, case .response(let id, .success(.object(let result))) = message else { return message }
        return .response(id: id, .success(.object(result.withNote(note))))
    }

    /// Records the repairs.
    ///
    /// - Returns: The text that names what is lost; nil if nothing is.
    private func note(on repairs: JSONRepairs) -> String? {
        for repair in repairs.first { record(repair.kind.deviation) }
        return repairs.note(redactor.redact)
    }
}

extension JSONObject {
    /// Returns the result with a note: as text where a model reads it, otherwise in `_meta`.
    func withNote(_ note: String) -> JSONObject {
        var result = self
        if let content = result["content"]?.array {
            result["content"] = .array(content + [["type": "text", "text": .string(note)]])
        } else {
            var meta = result["_meta"]?.object ?? [:]
            meta["patchbay/repaired"] = .string(note)
            result["_meta"] = .object(meta)
        }
        return result
    }
}

extension JSONRepair.Kind {
    var deviation: ServerDeviation.Kind {
        switch self {
        case .byteOrderMark: .byteOrderMark
        case .duplicateName: .duplicateNames
        case .syntax, .notJSON: .invalidSyntax
        case .invalidUTF8: .invalidUTF8
        case .tooDeep: .deepNesting
        }
    }
}

extension JSONRepairs {
    /// Names what is lost to the reader of a result.
    ///
    /// - Parameter redact: Removes tokens. They are removed before the text is cut, because a part of one would remain.
    /// - Returns: Nil if nothing is lost.
    func note(_ redact: (String) -> String = { $0 }) -> String? {
        losses(redact).map { "[repaired: the app's result is damaged: \(SanitizedText($0, limit: 500))]" }
    }
}

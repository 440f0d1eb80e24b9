import FoundationEssentials
package import Model

/// The result of a tool call, made from the server's response.
package enum ProfileResult: Hashable, Sendable {
    /// The result for `tools/call`: `content`, and `structuredContent` or `isError` if they apply.
    case content(JSONObject)
    /// An MP4 file, which is stored and returned by reference.
    case video([UInt8])
}

extension Profile {
    /// Converts the response to a call. An error of the server becomes a result with `isError`.
    ///
    /// - Parameters:
    ///   - tool: The called tool.
    ///   - arguments: Its arguments.
    ///   - response: The response.
    ///   - repairs: Gets what was repaired in the JSON of the response.
    /// - Returns: The result of the tool.
    /// - Throws: `ProfileError.invalidResponse` if the response is not what the profile describes.
    package func result(
        of tool: ProfileTool,
        arguments: JSONObject,
        response: AppResponse,
        repairs: inout JSONRepairs
    ) throws(ProfileError) -> ProfileResult {
        guard response.isSuccess else {
            let body = String(decoding: response.body, as: UTF8.self)
            let message = errorPointer.flatMap { response.text(at: $0) } ?? body
            return .content(Self.error("HTTP status \(response.status)", message))
        }
        guard tool.isRPC else { return try tool.result.result(of: response.body, arguments, &repairs) }
        let json = try ResultFormat.json(response.body, &repairs)
        if let error = json["error"], !error.isNull {
            let code = error["code"]?.int.map { " \($0)" } ?? ""
            // Some servers have one message for all errors, and their own words as the additional data.
            let words = ["message", "data"].compactMap { error[$0]?.string }.joined(separator: ": ")
            return .content(Self.error("error\(code)", words))
        }
        guard let result = json["result"] else {
            throw .invalidResponse(reason: "JSON-RPC without a result and without an error")
        }
        return try tool.result.result(of: result, arguments)
    }

    /// The maximum length of a server's error message in bytes.
    private static let errorLimit = 1_000

    private static func error(_ kind: String, _ message: String) -> JSONObject {
        .failure("\(kind): \(SanitizedText(message, limit: errorLimit))")
    }
}

extension ResultFormat {
    /// Converts the body of a response.
    func result(
        of body: [UInt8],
        _ arguments: JSONObject,
        _ repairs: inout JSONRepairs
    ) throws(ProfileError) -> ProfileResult {
        switch self {
        case .json, .base64Image, .text(.some): return try result(of: Self.json(body, &repairs), arguments)
        case .text(nil):
            guard !body.contains(0) else { throw .invalidResponse(reason: "something that is not text in UTF-8") }
            // Bytes that are not UTF-8 become U+FFFD.
            return .content(["content": [.text(String(decoding: body, as: UTF8.self))]])
        case .image:
            return .content(["content": [try Self.imageBlock(body, Data(body).base64EncodedString())]])
        case .video:
            // ISO 14496-12: the file begins with the size and the type of its first box.
            guard body.count > 8, body[4..<8].elementsEqual("ftyp".utf8) else {
                throw .invalidResponse(reason: "\(body.count) bytes that are no MP4 file")
            }
            return .video(body)
        }
    }

    /// Converts JSON, such as the result inside a JSON-RPC response.
    func result(of json: JSON, _ arguments: JSONObject) throws(ProfileError) -> ProfileResult {
        switch self {
        case .json(let selection): return .content(try selection.result(of: json, arguments))
        case .text(let pointer):
            guard let text = (pointer ?? .root).value(in: json)?.string else {
                throw .invalidResponse(reason: "JSON without a text at \"\(pointer ?? .root)\"")
            }
            return .content(["content": [.text(text)]])
        case .base64Image(let pointer):
            let text = pointer.value(in: json)?.string ?? ""
            guard let (data, isStandard) = Base64Decoder.decode(text), !data.isEmpty else {
                throw .invalidResponse(reason: "JSON without base64 at \"\(pointer)\"")
            }
            let base64 = isStandard ? text : data.base64EncodedString()
            return .content(["content": [try Self.imageBlock(Array(data), base64)]])
        case .image, .video: throw .invalidResponse(reason: "JSON instead of a file")
        }
    }

    static func json(_ body: [UInt8], _ repairs: inout JSONRepairs) throws(ProfileError) -> JSON {
        do {
            let parsed = try RepairedJSON(body)
            repairs = parsed.repairs
            return parsed.json
        } catch {
            throw .invalidResponse(reason: "invalid JSON (\(error.reason.rawValue), at byte \(error.offset))")
        }
    }

    private static func imageBlock(_ bytes: [UInt8], _ base64: String) throws(ProfileError) -> JSON {
        guard let type = ImageType(of: bytes) else {
            throw .invalidResponse(reason: "\(bytes.count) bytes that are no image")
        }
        return ["type": "image", "data": .string(base64), "mimeType": .string(type.rawValue)]
    }
}

extension JSONSelection {
    /// The maximum number of members in the outline of a large result.
    private static let outlineLimit = 50

    /// Returns the selected part; for a part over the limit, an outline with the pointers to its members.
    func result(of document: JSON, _ arguments: JSONObject) throws(ProfileError) -> JSONObject {
        guard let whole = pointer.value(in: document) else {
            throw .invalidResponse(reason: "JSON without a value at \"\(pointer)\"")
        }
        let text = pointerArgument.flatMap { arguments[$0]?.string } ?? ""
        guard let place = text.isEmpty ? .root : JSONPointer(text) else {
            return .failure("\"\(text)\" is not a JSON pointer; write it like \"/user/name\"")
        }
        guard let part = place.value(in: whole) else {
            return .failure("there is no value at \"\(text)\".\n\(Self.outline(of: whole, at: .root))")
        }
        let size = part.bytes.count
        if let limit = limitArgument.flatMap({ arguments[$0]?.int }) ?? limit, size > limit {
            let hints = [
                pointerArgument.map { "give one of these as \($0)" }, limitArgument.map { "raise \($0)" },
            ].compactMap { $0 }
            let advice = hints.isEmpty ? "" : "; \(hints.joined(separator: ", or "))"
            let header = "[\(size) bytes; the limit is \(limit)\(advice)]"
            return ["content": [.text("\(header)\n\(Self.outline(of: part, at: place))")]]
        }
        var result: JSONObject = ["content": [.text(part.text)]]
        // Structured content must be an object before the protocol version 2026-07-28.
        if case .object = part { result["structuredContent"] = part }
        return result
    }

    /// Returns a line with pointer, type and size for each member.
    private static func outline(of value: JSON, at pointer: JSONPointer) -> String {
        let members: [(name: String, value: JSON)] =
            switch value {
            case .object(let object): object.members.map { ($0.name, $0.value) }
            case .array(let elements): elements.enumerated().map { ("\($0.offset)", $0.element) }
            case .null, .bool, .number, .string: []
            }
        let lines = members.prefix(outlineLimit).map { member in
            "\(pointer.appending(member.name)): \(member.value.typeDescription) (\(member.value.bytes.count) B)"
        }
        let rest = members.count - lines.count
        return (lines + (rest > 0 ? ["… and \(rest) more"] : [])).joined(separator: "\n")
    }
}

import Model

/// The entry of `patchbay mcp` in the configuration of a client.
struct ServerEntry {
    let command: String
    let arguments: [String]

    /// The members of the entry, in the order in which clients write them.
    func members(for client: MCPClientKind) -> JSONObject {
        var members: JSONObject = client.isTOML ? [:] : ["type": "stdio"]
        members["command"] = .string(command)
        members["args"] = .array(arguments.map(JSON.string))
        return members
    }

    /// Returns whether an entry starts `patchbay mcp`.
    static func isOurs(_ entry: JSON) -> Bool {
        let command = entry["command"]?.string?.split(separator: "/").last
        return command == "patchbay" && entry["args"]?.array?.first == "mcp"
    }

    /// The text to add by hand.
    func snippet(for target: ConfigurationTarget) -> [String] {
        let members = members(for: target.client)
        if target.client.isTOML {
            return ["[\(target.path.joined(separator: "."))]"] + members.members.map { "\($0.name) = \($0.value.text)" }
        }
        let value = JSONTextEditor.lines(of: .object(members), [], Array("  ".utf8))
        let text = "\(JSON.string(target.name).text): \(String(decoding: value, as: UTF8.self))"
        return text.split(separator: "\n").map(String.init)
    }
}

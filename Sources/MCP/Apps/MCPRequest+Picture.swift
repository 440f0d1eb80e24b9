import JSON

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

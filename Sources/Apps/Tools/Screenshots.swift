import Model

/// Screenshots in JPEG format.
///
/// A PNG of a phone's screen is several times larger, on the network and for the app's main thread. If too large for an
/// agent, the broker would convert a PNG to JPEG anyway.
extension MCPRequest {
    private static let screenshot = "screenshot"
    private static let form = "format"
    private static let jpeg: JSON = "jpeg"

    /// True if the request is a screenshot that leaves the format open.
    var isOpenToJPEG: Bool {
        guard tool == Self.screenshot, let arguments = params["arguments"] else { return tool == Self.screenshot }
        // An explicit null is a choice as well; its meaning is up to the app.
        return arguments.object.map { $0[Self.form] == nil } ?? false
    }

    /// A copy that asks for JPEG.
    var requestingJPEG: MCPRequest {
        with(arguments: (params["arguments"]?.object ?? [:]).with(Self.form, Self.jpeg))
    }

    /// Returns whether a tool declares that it can return JPEG screenshots.
    static func offersJPEG(_ tool: JSONObject) -> Bool {
        guard tool["name"]?.string == screenshot, let format = tool["inputSchema"]?["properties"]?[form] else {
            return false
        }
        if let formats = format["enum"]?.array { return formats.contains(jpeg) }
        return format["description"]?.string?.lowercased().contains("jpeg") ?? false
    }
}

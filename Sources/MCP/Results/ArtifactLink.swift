package import JSON

/// What stands in an answer for what is kept elsewhere: a `resource_link`.
package struct ArtifactLink: Hashable, Sendable {
    package let sha: String
    package let mimeType: String
    package let size: Int

    package var uri: String { ArtifactStore.scheme + sha }

    /// A content block, in the words of 2025-06-18 and later.
    ///
    /// - Parameter reason: Why it is not in the answer itself.
    /// - Returns: The block.
    package func block(because reason: String? = nil) -> JSON {
        var block: JSONObject = [
            "type": "resource_link", "uri": .string(uri), "name": .string(name), "mimeType": .string(mimeType),
            "size": .number(JSONNumber(size)),
        ]
        block["description"] = reason.map { .string($0) }
        return .object(block)
    }

    private var name: String {
        let ending =
            switch mimeType {
            case "image/png": ".png"
            case "image/jpeg": ".jpg"
            case "application/json": ".json"
            case "text/plain": ".txt"
            default: ""
            }
        return "\(sha.prefix(8))\(ending)"
    }
}

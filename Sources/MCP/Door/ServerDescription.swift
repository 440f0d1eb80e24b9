package import JSON

/// What a server says about itself.
package struct ServerDescription: Hashable, Sendable {
    /// `name`, `version` and what else `Implementation` may have.
    package let info: JSONObject
    /// In the words of 2025-11-25; the door takes away what an older or newer revision does not know.
    package let capabilities: JSONObject
    /// Never with text that came from an app or from the network, but for an app's own server.
    package let instructions: String?

    package init(info: JSONObject, capabilities: JSONObject, instructions: String? = nil) {
        self.info = info
        self.capabilities = capabilities
        self.instructions = instructions
    }
}

package import JSON

/// A message that nobody answers.
package struct RPCNotification: Hashable, Sendable {
    package let method: String
    package let params: JSONObject?

    package init(method: String, params: JSONObject? = nil) {
        self.method = method
        self.params = params
    }
}

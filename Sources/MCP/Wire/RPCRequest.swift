package import JSON

/// A call that is to be answered.
package struct RPCRequest: Hashable, Sendable {
    package let id: RPCID
    package let method: String
    package let params: JSONObject?

    package init(id: RPCID, method: String, params: JSONObject? = nil) {
        self.id = id
        self.method = method
        self.params = params
    }
}

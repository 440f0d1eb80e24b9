import JSON

extension MCPRequest {
    /// For a list that has one page: asked for another one, it has none.
    func checkPage() throws(RPCError) {
        guard params["cursor"] == nil || params["cursor"] == .null else {
            throw .invalidParams("no list has that cursor")
        }
    }
}

/// How many things a request removed: the answer to `DELETE /v1/tunnels`, for one.
package struct DeleteResponse: Hashable, Sendable, Codable {
    package let removed: Int

    package init(removed: Int) { self.removed = removed }
}

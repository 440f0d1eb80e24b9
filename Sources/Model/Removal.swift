/// How many things a request removed: the answer to `DELETE /v1/tunnels`.
package struct Removal: Hashable, Sendable, Codable {
    package let removed: Int

    package init(removed: Int) { self.removed = removed }
}

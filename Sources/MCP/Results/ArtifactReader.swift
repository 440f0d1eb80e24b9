/// What is kept outside of an answer because it is too heavy for one.
package struct Artifact: Hashable, Sendable {
    package let bytes: [UInt8]
    package let mimeType: String

    package init(bytes: [UInt8], mimeType: String) {
        self.bytes = bytes
        self.mimeType = mimeType
    }
}

/// Where such things are fetched.
package protocol ArtifactReader: Sendable {
    /// Nil where there is none, or none for this caller.
    func artifact(_ sha: String, for caller: AgentCaller) async -> Artifact?
}

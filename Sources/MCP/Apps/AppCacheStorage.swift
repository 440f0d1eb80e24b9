package import Model

/// Keeps what is known of apps between two runs of the broker: one text for each.
package protocol AppCacheStorage: Sendable {
    /// What was kept last; nil when nothing was, or when it cannot be read.
    func recall(_ id: EndpointID) async -> String?
    /// Replaces what is kept. What cannot be written is reported there, and lost.
    func keep(_ text: String, of id: EndpointID) async
    func forget(_ id: EndpointID) async
}

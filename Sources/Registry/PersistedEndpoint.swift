package import Model

/// What is kept of an endpoint between two runs of the broker, so that its id outlives them.
package struct PersistedEndpoint: Hashable, Sendable, Codable {
    /// As it was when it was last seen; restored as offline.
    package var endpoint: Endpoint
    /// The source that it was first seen by. Only this source decides which endpoint it is.
    package let source: Sighting.Source
    /// Every key under which its app was seen; one is the usual number.
    package var keys: [IdentityKey]
    /// The exact SRV target, to tell apart two apps whose keys are alike.
    package var host: String?
    /// Ids under which it was listed before its app said its name; they go on meaning it until somebody else has them.
    package var formerIDs: [EndpointID]?

    package init(endpoint: Endpoint, source: Sighting.Source, keys: [IdentityKey], host: String? = nil) {
        self.endpoint = endpoint
        self.source = source
        self.keys = keys
        self.host = host
    }
}

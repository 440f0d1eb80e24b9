package import Model

/// What the liveness prober needs of the registry: what stands there, and somebody to tell what it found.
package protocol LivenessBoard: Sendable {
    func endpointsToProbe() async -> [Endpoint]
    /// Nil is success.
    func report(_ failure: DialFailure?, of id: EndpointID) async
}

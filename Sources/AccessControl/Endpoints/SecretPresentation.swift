import Model

/// The launches to which a secret may be sent in this run of the broker.
///
/// A secret belongs to one launch, which an observation of its port stands for. After the end of the observation the
/// secret is not sent over that port again, because another app may listen there.
struct SecretPresentation: Sendable {
    private let secret: EndpointSecret
    /// The observation of each port at the time when the secret was given, or at its first use.
    private var launches: [RoutePort: LaunchObservation]
    /// The port that was named with the secret. The secret is for the first launch that is seen there.
    private let namedPort: UInt16?
    /// The launches that were observed when the secret was given.
    private let known: Set<LaunchObservation>
    private var rejections: Set<LaunchObservation> = []
    /// True after a launch that was not known when the secret was given has rejected it.
    private var isExhausted = false

    /// - Parameters:
    ///   - secret: The secret.
    ///   - launches: The current observation of each port that the secret is for. Empty if the app is away.
    ///   - namedPort: The port that was named with the secret; nil without one.
    init(
        of secret: EndpointSecret,
        to launches: [RoutePort: LaunchObservation] = [:],
        namedPort: UInt16? = nil
    ) {
        self.secret = secret
        self.launches = launches
        self.namedPort = namedPort
        known = Set(launches.values)
    }

    /// Returns whether this is the presentation of a secret.
    func isOf(_ other: EndpointSecret) -> Bool { secret.isEqual(to: other) }

    /// Returns whether the secret may be sent to an observed launch.
    ///
    /// - Parameters:
    ///   - observation: The current observation of the port.
    ///   - port: The port of the route.
    ///   - isForUnseen: True if the secret is also for the first launch that was not seen when it was given.
    /// - Returns: False if another launch may have taken the port.
    func allows(_ observation: LaunchObservation, at port: RoutePort, isForUnseen: Bool) -> Bool {
        guard !rejections.contains(observation) else { return false }
        if let launch = launches[port], launch == observation { return true }
        if launches.isEmpty || launches[port] == nil && port.number == namedPort { return true }
        return isForUnseen && !isExhausted
    }

    /// Records that the secret is sent to an observed launch.
    mutating func record(_ observation: LaunchObservation, at port: RoutePort) { launches[port] = observation }

    /// Records that the launches behind these ports rejected the secret.
    mutating func reject(at ports: some Sequence<RoutePort>) {
        let rejecting = ports.compactMap { launches[$0] }
        rejections.formUnion(rejecting)
        if !known.isSuperset(of: rejecting) { isExhausted = true }
    }

    /// The same launches for a secret that the app gave in exchange.
    func exchanged(for secret: EndpointSecret) -> SecretPresentation { SecretPresentation(of: secret, to: launches) }
}

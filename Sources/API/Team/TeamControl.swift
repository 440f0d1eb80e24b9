package import Model

/// Sets up the team of this broker. Rejections are thrown as `Problem`.
package protocol TeamControl: Sendable {
    func status() async throws -> TeamStatus

    /// Creates a team with its certificate authority on this host, and prepares the registry.
    ///
    /// A second call with the same name repairs what the first one could not do. If the registry does not answer,
    /// `TeamStatus.problem` has the reason.
    func create(_ spec: TeamSpec) async throws -> TeamStatus

    /// Joins the team of another host.
    func join(_ spec: TeamJoinSpec) async throws -> TeamStatus

    /// Deletes the own entries in the registry, and the files of the team.
    ///
    /// - Returns: The name of the team.
    @discardableResult
    func leave() async throws -> SanitizedText

    /// Creates a one-time invite for another host. Only on the authority.
    func invite(_ spec: TeamInviteSpec) async throws -> TeamInvite

    /// Admits the host that holds an invite. Only on the authority.
    func admit(_ spec: TeamMemberSpec) async throws -> TeamAdmission

    /// Removes a host from the team. Only on the authority. A later call completes one that failed.
    ///
    /// - Parameters:
    ///   - host: The host.
    ///   - onRemoval: Records the removal. Called after the end of the membership, also if the rest of the call fails.
    /// - Throws: `Problem`, an error of `onRemoval`.
    func remove(_ host: HostName, onRemoval: @Sendable () async throws -> Void) async throws

    /// Issues the certificate of an etcd node. Only on the authority.
    func issue(_ spec: TeamCertificateSpec) async throws -> TeamCertificate
}

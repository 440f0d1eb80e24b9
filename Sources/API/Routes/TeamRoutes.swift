import AccessControl
import HummingbirdCore
import Model
import Team

/// `/v1/team`. Each change has an entry in the audit log.
enum TeamRoutes {
    @Sendable static func show(_ request: APIRequest) async throws -> APIResponse {
        try .json(await request.services.teamSetup.status())
    }

    @Sendable static func create(_ request: APIRequest) async throws -> APIResponse {
        let spec = try await request.body(TeamSpec.self)
        let status = try await request.services.teamSetup.create(spec)
        let detail = status.problem == nil ? nil : "its registry is not ready"
        try await request.audit(.teamCreated, of: spec.team, detail)
        return try .created(status)
    }

    @Sendable static func join(_ request: APIRequest) async throws -> APIResponse {
        let spec = try await request.body(TeamJoinSpec.self)
        let status = try await request.services.teamSetup.join(spec)
        try await request.audit(.teamJoined, of: status.team, status.host.map { "as the host \($0)" })
        return try .json(status)
    }

    @Sendable static func leave(_ request: APIRequest) async throws -> APIResponse {
        let team = try await request.services.teamSetup.leave()
        try await request.audit(.teamLeft, of: team)
        return .noContent
    }

    @Sendable static func invite(_ request: APIRequest) async throws -> APIResponse {
        let spec = try await request.body(TeamInviteSpec.self)
        let invite = try await request.services.teamSetup.invite(spec)
        let count = spec.hosts ?? 1
        try await request.audit(
            .hostInvited,
            invite: try Token(TeamPairingString(invite.pairing).invite).id,
            count == 1 ? nil : "for \(count) hosts"
        )
        return try .created(invite)
    }

    @Sendable static func listInvites(_ request: APIRequest) async throws -> APIResponse {
        try .json(ListResponse(await request.services.teamSetup.invites()))
    }

    @Sendable static func revokeInvite(_ request: APIRequest) async throws -> APIResponse {
        let id = try request.parameter("id")
        try await request.services.teamSetup.revoke(invite: id)
        try await request.audit(.hostInviteRevoked, invite: id)
        return .noContent
    }

    /// Admits a host. The invite in the body is the authentication, because the host has no certificate yet.
    @Sendable static func admit(_ request: APIRequest) async throws -> APIResponse {
        let spec = try await request.body(TeamMemberSpec.self)
        let (admission, useCount): (TeamAdmission, Int)
        do { (admission, useCount) = try await request.services.teamSetup.admit(spec) } catch let problem as Problem
            where problem.code == .unauthorized
        {
            let principal = request.principal
            try await request.services.accessStore.auditDenied(
                "an invalid invite for a host",
                of: principal.actor,
                from: principal.source
            )
            throw problem
        }
        let key = admission.members.first { $0.name == spec.host }?.key
        try await request.audit(
            .hostAdmitted,
            of: SanitizedText(spec.host.text),
            invite: try Token(spec.invite).id,
            useCount: useCount,
            key.map { "with the key \($0)" }
        )
        return try .created(admission)
    }

    /// Renews the certificate of a member. Its present certificate is the authentication.
    @Sendable static func renew(_ request: APIRequest) async throws -> APIResponse {
        guard let member = request.principal.member else {
            throw Problem(.forbidden, "only a member of the team renews its certificate, at the team listener")
        }
        let spec = try await request.body(TeamRenewalSpec.self)
        let renewal = try await request.services.teamSetup.renew(spec, of: member.host)
        try await request.audit(.certificateIssued, of: SanitizedText(member.host.text))
        return try .json(renewal)
    }

    @Sendable static func remove(_ request: APIRequest) async throws -> APIResponse {
        let text = try request.parameter("host")
        guard let host = HostName(text) else {
            throw Problem(.notFound, "\"\(SanitizedText(text))\" is not the name of a host", hint: "patchbay team")
        }
        try await request.services.teamSetup.remove(host) {
            try await request.audit(.hostRemoved, of: SanitizedText(host.text))
        }
        return .noContent
    }

    @Sendable static func issue(_ request: APIRequest) async throws -> APIResponse {
        let spec = try await request.body(TeamCertificateSpec.self)
        let certificate = try await request.services.teamSetup.issue(spec)
        try await request.audit(.certificateIssued, of: SanitizedText(spec.addresses.joined(separator: " ")))
        return try .created(certificate)
    }
}

extension APIRequest {
    /// Records a change of the team in the audit log. `invite` is the ID of one.
    fileprivate func audit(
        _ action: AuditEvent.Action,
        of subject: SanitizedText? = nil,
        invite: String? = nil,
        useCount: Int? = nil,
        _ detail: String? = nil
    ) async throws {
        try await services.accessStore.auditTeam(
            action,
            of: subject,
            invite: invite,
            useCount: useCount,
            detail,
            by: principal
        )
    }
}

import HTTPTypes
import Model

/// Who may come in, for how long, and what they did: the second half of the table.
extension RouteTable {
    static let access: [APIRoute] = [
        APIRoute(
            .get,
            "/v1/invites",
            .scope(.inviteCreate),
            "Every invite, without its secret",
            gives: "InviteList",
            InviteRoutes.list
        ),
        APIRoute(
            .post,
            "/v1/invites",
            .scope(.inviteCreate),
            "Make a one-time token",
            takes: "InviteSpec",
            gives: "IssuedInvite",
            InviteRoutes.create
        ),
        APIRoute(
            .post,
            "/v1/invites/redeem",
            .anyone,
            "Spend a one-time token on a grant",
            takes: "RedemptionSpec",
            gives: "IssuedGrant",
            InviteRoutes.redeem
        ),
        APIRoute(
            .delete,
            "/v1/invites/{id}",
            .scope(.inviteCreate),
            "End an invite",
            gives: "RevocationResult",
            outlivesGrant: true,
            InviteRoutes.revoke
        ),

        APIRoute(
            .get,
            "/v1/grants",
            .holder,
            "The caller's grant and those under it; every one for an owner",
            gives: "GrantList",
            GrantRoutes.list
        ),
        APIRoute(
            .delete,
            "/v1/grants",
            .owner,
            "End every grant and every open invite",
            gives: "RevocationResult",
            outlivesGrant: true,
            GrantRoutes.revokeAll
        ),
        APIRoute(
            .get,
            "/v1/grants/{id}",
            .holder,
            "One grant; self is the caller's own",
            gives: "Grant",
            GrantRoutes.show
        ),
        APIRoute(
            .delete,
            "/v1/grants/{id}",
            .holder,
            "End a grant; when it is answered, everything of it is cut",
            gives: "RevocationResult",
            outlivesGrant: true,
            GrantRoutes.revoke
        ),
        APIRoute(
            .post,
            "/v1/grants/{id}/rotate",
            .holder,
            "Replace the secret of the caller's own grant",
            takes: "RotationSpec",
            gives: "IssuedGrant",
            GrantRoutes.rotate
        ),
        APIRoute(
            .post,
            "/v1/grants/{id}/delegate",
            .holder,
            "Give a part of the caller's grant to somebody else",
            takes: "DelegationSpec",
            gives: "IssuedGrant",
            GrantRoutes.delegate
        ),

        APIRoute(
            .get,
            "/v1/requests",
            .owner,
            "Everybody who waits for a yes",
            gives: "AccessRequestList",
            AccessRequestRoutes.list
        ),
        APIRoute(
            .post,
            "/v1/requests",
            .local,
            "Ask for access",
            takes: "AccessRequestSpec",
            gives: "AccessRequestCreated",
            AccessRequestRoutes.ask
        ),
        APIRoute(
            .post,
            "/v1/requests/poll",
            .local,
            "Ask how that stands",
            takes: "AccessRequestPoll",
            gives: "AccessRequestStatus",
            creates: false,
            AccessRequestRoutes.poll
        ),
        APIRoute(
            .post,
            "/v1/requests/reopen",
            .owner,
            "Take requests again after too many wrong codes",
            AccessRequestRoutes.reopen
        ),
        APIRoute(
            .post,
            "/v1/requests/{code}/approve",
            .owner,
            "Say yes to who shows this code",
            gives: "AccessRequest",
            AccessRequestRoutes.approve
        ),
        APIRoute(
            .post,
            "/v1/requests/{code}/deny",
            .owner,
            "Say no to who shows this code",
            gives: "AccessRequest",
            AccessRequestRoutes.deny
        ),

        APIRoute(
            .get,
            "/v1/audit",
            .owner,
            "Lines of the audit log",
            query: [
                Query("after", .integer, "those after this number; without it the last ones"),
                Query("limit", .integer, "how many, 1,000 at most"),
            ],
            gives: "AuditPage",
            AuditRoutes.show
        ),
        APIRoute(
            .get,
            "/v1/audit/verify",
            .owner,
            "Whether the audit log is whole",
            gives: "AuditVerification",
            AuditRoutes.verify
        ),
        APIRoute(
            .post,
            "/v1/clock/recover",
            .owner,
            "Go by the wall clock again, after it was set right",
            gives: "RevocationResult",
            AuditRoutes.recoverClock
        ),
    ]
}

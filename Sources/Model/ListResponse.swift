/// All endpoints at one revision: the response to `GET /v1/endpoints` and the `snapshot` event.
package struct EndpointList: Hashable, Sendable, Codable {
    /// The version of the document format.
    package let schema: Int
    package let revision: UInt64
    package let endpoints: [Endpoint]

    package init(revision: UInt64, endpoints: [Endpoint]) {
        schema = 1
        self.revision = revision
        self.endpoints = endpoints
    }
}

/// All attached phones: the response to `GET /v1/devices` and the `devices` event.
package struct DeviceList: Hashable, Sendable, Codable {
    /// The version of the document format.
    package let schema: Int
    package let devices: [Device]

    package init(devices: [Device]) {
        schema = 1
        self.devices = devices
    }
}

/// All tunnels, including waiting ones: the response to `GET /v1/tunnels`.
package struct TunnelList: Hashable, Sendable, Codable {
    /// The version of the document format.
    package let schema: Int
    package let tunnels: [Tunnel]

    package init(tunnels: [Tunnel]) {
        schema = 1
        self.tunnels = tunnels
    }
}

/// All published services: the response to `GET /v1/advertisements`.
package struct AdvertisementList: Hashable, Sendable, Codable {
    /// The version of the document format.
    package let schema: Int
    package let advertisements: [Advertisement]

    package init(advertisements: [Advertisement]) {
        schema = 1
        self.advertisements = advertisements
    }
}

/// All approvals: the response to `GET /v1/approvals`.
package struct ApprovalList: Hashable, Sendable, Codable {
    package let schema: Int
    package let approvals: [Approval]

    package init(approvals: [Approval]) {
        schema = 1
        self.approvals = approvals
    }
}

/// The active grants and those that ended within a day, newest first: the response to `GET /v1/grants`.
package struct GrantList: Hashable, Sendable, Codable {
    package let schema: Int
    package let grants: [Grant]

    package init(grants: [Grant]) {
        schema = 1
        self.grants = grants
    }
}

/// The active invites and those that ended within a day, newest first: the response to `GET /v1/invites`.
package struct InviteList: Hashable, Sendable, Codable {
    package let schema: Int
    package let invites: [Invite]

    package init(invites: [Invite]) {
        schema = 1
        self.invites = invites
    }
}

/// The pending access requests, oldest first: the response to `GET /v1/access-requests`.
package struct AccessRequestList: Hashable, Sendable, Codable {
    package let schema: Int
    package let requests: [AccessRequest]

    package init(requests: [AccessRequest]) {
        schema = 1
        self.requests = requests
    }
}

/// The number of deleted objects: the response to a `DELETE` request, for example `DELETE /v1/tunnels`.
package struct DeleteResponse: Hashable, Sendable, Codable {
    package let deletedCount: Int

    package init(deletedCount: Int) { self.deletedCount = deletedCount }
}

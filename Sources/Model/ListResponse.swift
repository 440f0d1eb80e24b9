/// Every endpoint as of one revision: the answer to `GET /v1/endpoints` and the `snapshot` event.
package struct EndpointList: Hashable, Sendable, Codable {
    /// The version of this document's form.
    package let schema: Int
    package let revision: UInt64
    package let endpoints: [Endpoint]

    package init(revision: UInt64, endpoints: [Endpoint]) {
        schema = 1
        self.revision = revision
        self.endpoints = endpoints
    }
}

/// Every phone that is attached: the answer to `GET /v1/devices` and the `devices` event.
package struct DeviceList: Hashable, Sendable, Codable {
    /// The version of this document's form.
    package let schema: Int
    package let devices: [Device]

    package init(devices: [Device]) {
        schema = 1
        self.devices = devices
    }
}

/// Every tunnel, those that wait included: the answer to `GET /v1/tunnels`.
package struct TunnelList: Hashable, Sendable, Codable {
    /// The version of this document's form.
    package let schema: Int
    package let tunnels: [Tunnel]

    package init(tunnels: [Tunnel]) {
        schema = 1
        self.tunnels = tunnels
    }
}

/// Everything that Patchbay publishes: the answer to `GET /v1/advertisements`.
package struct AdvertisementList: Hashable, Sendable, Codable {
    /// The version of this document's form.
    package let schema: Int
    package let advertisements: [Advertisement]

    package init(advertisements: [Advertisement]) {
        schema = 1
        self.advertisements = advertisements
    }
}

/// Every yes to an endpoint: the answer to `GET /v1/approvals`.
package struct ApprovalList: Hashable, Sendable, Codable {
    package let schema: Int
    package let approvals: [Approval]

    package init(approvals: [Approval]) {
        schema = 1
        self.approvals = approvals
    }
}

/// Every grant that counts or ended within a day, the newest first: the answer to `GET /v1/grants`.
package struct GrantList: Hashable, Sendable, Codable {
    package let schema: Int
    package let grants: [Grant]

    package init(grants: [Grant]) {
        schema = 1
        self.grants = grants
    }
}

/// Every invite that counts or ended within a day, the newest first: the answer to `GET /v1/invites`.
package struct InviteList: Hashable, Sendable, Codable {
    package let schema: Int
    package let invites: [Invite]

    package init(invites: [Invite]) {
        schema = 1
        self.invites = invites
    }
}

/// Every request that waits for an answer, the oldest first: the answer to `GET /v1/requests`.
package struct AccessRequestList: Hashable, Sendable, Codable {
    package let schema: Int
    package let requests: [AccessRequest]

    package init(requests: [AccessRequest]) {
        schema = 1
        self.requests = requests
    }
}

/// How many things a request removed: the answer to `DELETE /v1/tunnels`, for one.
package struct DeleteResponse: Hashable, Sendable, Codable {
    package let removed: Int

    package init(removed: Int) { self.removed = removed }
}

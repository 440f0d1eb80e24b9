import SwiftProtobuf

/// A gRPC method of etcd.
struct EtcdMethod<Request: Message, Response: Message>: Sendable {
    let path: String
    /// True if a second execution changes nothing, so that the call may be repeated.
    let isRepeatable: Bool

    fileprivate init(_ name: String, isRepeatable: Bool = false) {
        path = "/etcdserverpb.\(name)"
        self.isRepeatable = isRepeatable
    }
}

extension EtcdMethod<EtcdRangeRequest, EtcdRangeResponse> {
    static var range: Self { Self("KV/Range", isRepeatable: true) }
}

extension EtcdMethod<EtcdTxnRequest, EtcdTxnResponse> {
    static var transaction: Self { Self("KV/Txn") }
}

extension EtcdMethod<EtcdWatchRequest, EtcdWatchResponse> {
    static var watch: Self { Self("Watch/Watch") }
}

extension EtcdMethod<EtcdLeaseGrantRequest, EtcdLeaseGrantResponse> {
    /// A session lease that is granted twice ends by itself.
    static var grantSessionLease: Self { Self("Lease/LeaseGrant", isRepeatable: true) }
}

extension EtcdMethod<EtcdLeaseKeepAliveRequest, EtcdLeaseKeepAliveResponse> {
    /// A stream in both directions, used for one request and one response.
    static var renewSessionLease: Self { Self("Lease/LeaseKeepAlive", isRepeatable: true) }
}

extension EtcdMethod<EtcdLeaseRevokeRequest, EtcdEmptyResponse> {
    static var revokeSessionLease: Self { Self("Lease/LeaseRevoke", isRepeatable: true) }
}

extension EtcdMethod<EtcdAuthEnableRequest, EtcdEmptyResponse> {
    static var enableAuthentication: Self { Self("Auth/AuthEnable", isRepeatable: true) }
}

extension EtcdMethod<EtcdAuthUserAddRequest, EtcdEmptyResponse> {
    static var addUser: Self { Self("Auth/UserAdd", isRepeatable: true) }
}

extension EtcdMethod<EtcdAuthUserDeleteRequest, EtcdEmptyResponse> {
    static var deleteUser: Self { Self("Auth/UserDelete", isRepeatable: true) }
}

extension EtcdMethod<EtcdAuthUserListRequest, EtcdAuthUserListResponse> {
    static var users: Self { Self("Auth/UserList", isRepeatable: true) }
}

extension EtcdMethod<EtcdAuthUserGrantRoleRequest, EtcdEmptyResponse> {
    static var grantRole: Self { Self("Auth/UserGrantRole", isRepeatable: true) }
}

extension EtcdMethod<EtcdAuthRoleAddRequest, EtcdEmptyResponse> {
    static var addRole: Self { Self("Auth/RoleAdd", isRepeatable: true) }
}

extension EtcdMethod<EtcdAuthRoleDeleteRequest, EtcdEmptyResponse> {
    static var deleteRole: Self { Self("Auth/RoleDelete", isRepeatable: true) }
}

extension EtcdMethod<EtcdAuthRoleListRequest, EtcdAuthRoleListResponse> {
    static var roles: Self { Self("Auth/RoleList", isRepeatable: true) }
}

extension EtcdMethod<EtcdAuthRoleGrantPermissionRequest, EtcdEmptyResponse> {
    static var grantPermission: Self { Self("Auth/RoleGrantPermission", isRepeatable: true) }
}

extension EtcdMethod<EtcdStatusRequest, EtcdStatusResponse> {
    static var status: Self { Self("Maintenance/Status", isRepeatable: true) }
}

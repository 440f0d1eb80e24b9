import API
import AccessControl
import Registry

/// The objects of the running broker that a reload of the configuration changes.
struct ReloadTargets: Sendable {
    let logLevel: SharedLogLevel
    let accessStore: AccessStore
    let staticEndpoints: StaticEndpoints
    let approvals: ApprovalService
}

import API
import AccessControl

/// What a reload of the configuration changes in the running broker.
struct ReloadTargets: Sendable {
    let logLevel: LogLevel
    let accessStore: AccessStore
    let staticEndpoints: StaticEndpoints
    let approvals: ApprovalService
}

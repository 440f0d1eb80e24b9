/// Every yes to an endpoint: the answer to `GET /v1/approvals`.
package struct ApprovalList: Hashable, Sendable, Codable {
    package let schema: Int
    package let approvals: [Approval]

    package init(approvals: [Approval]) {
        schema = 1
        self.approvals = approvals
    }
}

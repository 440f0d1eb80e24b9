import AccessControl
import Apps
import Model
import Registry

/// The endpoints as the broker's tools and resources show them to a principal.
struct EndpointDirectory: Sendable {
    /// The maximum number of endpoints in one result.
    static let pageSize = 50
    /// The maximum number of matching endpoints that an error lists.
    private static let maxCandidates = 5

    let list: any EndpointListing
    let apps: any AppCaller
    let approvals: any EndpointApprovalStore
    let leases: LeaseService

    /// The revision of the list.
    var revision: Int { get async { Int(clamping: await list.revision) } }

    /// Returns the endpoints that the principal may see, with their approval state and their leases.
    func endpoints(visibleTo principal: Principal) async -> [Endpoint] {
        let visible = await list.endpoints.filter(principal.canSee).map(principal.view)
        return leases.withLeases(await approvals.evaluated(visible), for: principal)
    }

    /// Returns the endpoints that the principal may see, as lists show them.
    func listed(visibleTo principal: Principal) async -> [Endpoint] {
        await endpoints(visibleTo: principal).combined
    }

    /// Returns the endpoint with this ID, if the principal may see it.
    func endpoint(_ id: EndpointID, visibleTo principal: Principal) async -> Endpoint? {
        let all = await endpoints(visibleTo: principal)
        return all.combined.first { $0.id == id } ?? all.first { $0.id == id }
    }

    /// Returns the only endpoint that a text matches: its ID, or a part of its names (`EndpointMatch`).
    ///
    /// `takesUnapproved` is true for the tool that leads to an approval.
    func endpoint(
        matching text: String,
        for principal: Principal,
        takesUnapproved: Bool = false
    ) async throws(ToolError) -> Endpoint {
        let text = text.trimmed
        if let found = await endpoint(called: text, visibleTo: principal) { return found }
        let all = await endpoints(visibleTo: principal)
        let shown = SanitizedText(text, limit: 60)
        switch EndpointMatch(text, among: all.combined, by: { $0.matches(text) }) {
        case .one(let found): return all.first { $0.id == found.id } ?? found
        case .unapproved(let found):
            guard !takesUnapproved else { return all.first { $0.id == found.id } ?? found }
            guard found.state != .blocked else {
                throw ToolError("no endpoint matches \"\(shown)\" that can be used, only \(found.id), which is blocked")
            }
            guard found.approval != .denied else {
                throw ToolError(
                    "no approved endpoint matches \"\(shown)\", only \(found.id), which an owner has denied"
                )
            }
            let command = ApprovalPolicy.command(toApprove: found)
            throw ToolError(
                """
                no approved endpoint matches "\(shown)", only \(found.id), which is not approved; a person who knows that \
                device has to type: \(command)
                """
            )
        case .none:
            let absence = EndpointID(text.lowercased()).flatMap { list.hosts?.absence(of: $0) }
            let end = EndpointSuggestions(among: all.combined).suggestion(for: text)
            throw ToolError(absence.map { "\($0)" } ?? "no endpoint matches \"\(shown)\"\(end)")
        case .several(let matching): throw Self.ambiguous(text, matching)
        }
    }

    /// Returns the endpoint with this full ID or former ID, if the principal may see it. The whole list is not read, which
    /// has thousands of endpoints in a large team.
    private func endpoint(called text: String, visibleTo principal: Principal) async -> Endpoint? {
        guard let id = EndpointID(text), let found = try? await list.endpoint(id), principal.canSee(found)
        else { return nil }
        return leases.withLeases(await approvals.evaluated([principal.view(of: found)]), for: principal).first
    }

    /// Returns the endpoint that the text means now.
    func match(_ text: String, for principal: Principal) async -> EndpointMatch {
        EndpointMatch(text, among: await listed(visibleTo: principal)) { $0.matches(text) }
    }

    /// The error for a text that matches several endpoints.
    static func ambiguous(_ text: String, _ matching: [Endpoint]) -> ToolError {
        let shown = SanitizedText(text, limit: 60)
        let ids = matching.prefix(maxCandidates).map(\.id.text).joined(separator: ", ")
        let more = matching.count > maxCandidates ? " and \(matching.count - maxCandidates) more" : ""
        return ToolError("\"\(shown)\" matches \(matching.count) endpoints, say which: \(ids)\(more)")
    }

    /// Returns the summary of an endpoint with its current approval state.
    func summary(of endpoint: Endpoint) async -> EndpointSummary? {
        await summaries(of: await approvals.evaluated([endpoint])).first
    }

    /// Returns the summaries of endpoints whose approval state is known.
    func summaries(of endpoints: some Collection<Endpoint>) async -> [EndpointSummary] {
        let held = await approvals.withSecrets(among: Array(endpoints))
        var summaries: [EndpointSummary] = []
        for endpoint in endpoints {
            // The broker of the other host has the secrets of its endpoints.
            let hasSecret =
                endpoint.isOnOtherHost
                ? endpoint.shownRoutes.contains(where: \.isSecretHeld) : held.contains(endpoint.id)
            summaries.append(
                EndpointSummary(
                    endpoint,
                    needsToken: apps.wantsSecret(endpoint)
                        || (endpoint.wantsToken || apps.requiresSecret(endpoint)) && !hasSecret,
                    tools: await apps.toolCount(of: endpoint)
                )
            )
        }
        return summaries
    }
}

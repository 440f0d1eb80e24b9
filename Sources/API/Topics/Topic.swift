import AccessControl
import FoundationEssentials
import HTTPTypes
import Model

/// A list of the API whose changes `/v1/events?topics=…` streams: each event is the whole answer of the route of that name.
///
/// The topic `activity` streams single entries instead, so it has its own subscription beside these.
enum Topic: String, CaseIterable, Sendable {
    case status
    case tunnels
    case leases
    case accessRequests = "access-requests"
    case invites
    case grants
    case agents
    case problems

    /// The value of the query for every topic that the caller may see.
    static let all = "all"

    /// The name of the topic that streams single entries.
    static let activity = "activity"

    /// Returns whether a query names the topic `activity`.
    static func includesActivity(_ text: String) -> Bool {
        text == all || text.split(separator: ",").contains(activity[...])
    }

    /// Parses the names in a query, separated by commas.
    ///
    /// - Throws: `Problem` for an unknown name.
    static func topics(named text: String) throws(Problem) -> Set<Topic> {
        if text == all { return Set(allCases) }
        var topics: Set<Topic> = []
        for name in text.split(separator: ",", omittingEmptySubsequences: false) where name != activity {
            guard let topic = Topic(rawValue: String(name)) else {
                throw Problem(
                    .badRequest,
                    "there is no topic \"\(SanitizedText(name))\"",
                    hint: "topics=\(all), or some of \((allCases.map(\.rawValue) + [activity]).joined(separator: ","))"
                )
            }
            topics.insert(topic)
        }
        return topics
    }

    /// The permission of the topic, which is that of its route.
    private var permission: RoutePermission? { try? RouteTable.route(.get, "/v1/\(rawValue)").route.permission }

    /// Returns whether a client may see the topic.
    func isVisible(to request: APIRequest) -> Bool {
        guard let permission else { return false }
        do { try permission.authorize(request.principal) } catch { return false }
        return true
    }

    /// True if owners see different documents: a lease is marked as the caller's own.
    private var dependsOnHolder: Bool { self == .leases }

    /// The clients that see the same document as this one.
    func audience(of request: APIRequest) -> String {
        request.principal.isOwner && !dependsOnHolder ? "owners" : request.principal.holder
    }

    /// Returns the answer of the route to this client.
    func document(for request: APIRequest) async throws -> [UInt8] {
        let encoder = JSONCoding.encoder()
        return switch self {
        case .status: Array(try encoder.encode(await StatusRoutes.status(request)))
        case .tunnels: Array(try encoder.encode(ListResponse(await request.tunnels())))
        case .leases: Array(try encoder.encode(ListResponse(await LeaseRoutes.visible(to: request))))
        case .accessRequests:
            Array(try encoder.encode(ListResponse(await request.services.accessStore.requests.pending)))
        case .invites: Array(try encoder.encode(ListResponse(await InviteRoutes.visible(to: request))))
        case .grants: Array(try encoder.encode(ListResponse(await request.grants())))
        case .agents: Array(try encoder.encode(ListResponse(await AgentRoutes.visible(to: request))))
        case .problems: Array(try encoder.encode(ListResponse(await ProblemRoutes.visible(to: request))))
        }
    }
}

import AccessControl
import Apps
import FoundationEssentials
import Model
import Registry

/// The endpoint list and the devices as resources. Clients can subscribe to them.
struct BrokerResourceProvider: Sendable {
    let directory: EndpointDirectory
    let devices: any DeviceListing

    /// Returns a page of the resources that the principal may see.
    func page(_ params: JSONObject, for principal: Principal) async throws(RPCError) -> JSONObject {
        guard principal.may(.registryRead) else { return ["resources": []] }
        let cursor = try Self.cursor(params)
        let ids = await directory.listed(visibleTo: principal).map(\.id).filter { $0.text > cursor }
        var resources = cursor.isEmpty ? [BrokerResource.endpoints.json] : []
        if cursor.isEmpty, principal.canSeeAllEndpoints { resources.append(BrokerResource.devices.json) }
        let page = ids.prefix(EndpointDirectory.pageSize)
        resources += page.map { BrokerResource.endpoint($0).json }
        var result: JSONObject = ["resources": .array(resources)]
        if page.count < ids.count { result["nextCursor"] = page.last.map { .string($0.text) } }
        return result
    }

    /// Returns the content of a resource.
    func read(_ params: JSONObject, for principal: Principal) async throws(RPCError) -> JSONObject {
        guard let uri = params["uri"]?.string else { throw .invalidParams("uri must be a string") }
        guard let resource = BrokerResource(uri), principal.may(.registryRead) else {
            throw await notFound(uri, for: principal)
        }
        let json: JSON
        switch resource {
        case .endpoints:
            let revision = JSON.number(JSONNumber(await directory.revision))
            let summaries = await directory.summaries(of: await directory.listed(visibleTo: principal))
            json = ["revision": revision, "endpoints": .array(summaries.map { .object($0.json) })]
        case .endpoint(let id):
            guard let endpoint = await directory.endpoint(id, visibleTo: principal) else {
                throw await notFound(uri, for: principal)
            }
            json = await details(of: endpoint)
        case .devices:
            guard principal.canSeeAllEndpoints else { throw .resourceNotFound(uri) }
            json = Self.json(ListResponse(await devices.devices()))
        }
        return [
            "contents": [["uri": .string(uri), "mimeType": "application/json", "text": .string(json.text)]]
        ]
    }

    /// Rejects subscriptions to resources that do not exist or that the principal may not see.
    func validateSubscription(_ params: JSONObject, for principal: Principal) async throws(RPCError) {
        guard let uri = params["uri"]?.string else { throw .invalidParams("uri must be a string") }
        guard principal.may(.registryRead) else { throw .resourceNotFound(uri) }
        switch BrokerResource(uri) {
        case .endpoints?: return
        case .endpoint(let id)?: if await directory.endpoint(id, visibleTo: principal) != nil { return }
        case .devices?: if principal.canSeeAllEndpoints { return }
        case nil: break
        }
        throw await notFound(uri, for: principal)
    }

    /// Returns the error for a resource that does not exist, with the nearest one that the principal may read.
    private func notFound(_ uri: String, for principal: Principal) async -> RPCError {
        guard principal.may(.registryRead), uri.utf8.count <= 100 else { return .resourceNotFound(uri) }
        let ids = await directory.listed(visibleTo: principal).filter { $0.approval == .approved }.map(\.id)
        let uris = [BrokerResource.endpoints.uri] + ids.map { BrokerResource.endpoint($0).uri }
        let near = uris.min { SimilarNameFinder.distance($0, uri) < SimilarNameFinder.distance($1, uri) }
        guard let near, SimilarNameFinder.distance(near, uri) <= 3 else { return .resourceNotFound(uri) }
        return .resourceNotFound(uri, suggestion: "; did you mean \(near)? resources/list lists those there are")
    }

    /// Returns the summary of an endpoint. For an approved endpoint, adds its approved routes and the facts that they
    /// report.
    private func details(of endpoint: Endpoint) async -> JSON {
        var json = await directory.summaries(of: [endpoint]).first?.json ?? [:]
        guard endpoint.approval == .approved else { return .object(json) }
        json["reason"] = endpoint.reason.map(JSON.string)
        json["routes"] = Self.json(endpoint.approvedRoutes)
        json["hostRoutes"] = endpoint.hostRoutes.map { Self.json($0.filter(\.isApproved)) }
        json["txt"] = Self.json(endpoint.txt)
        json["firstSeenAt"] = .string(JSONCoding.text(of: endpoint.firstSeenAt))
        json["lastSeenAt"] = endpoint.lastSeenAt.map { .string(JSONCoding.text(of: $0)) }
        return .object(json)
    }

    private static func cursor(_ params: JSONObject) throws(RPCError) -> String {
        guard let cursor = params["cursor"] else { return "" }
        guard let text = cursor.string, EndpointID(text) != nil else { throw .invalidParams("unknown cursor") }
        return text
    }

    private static func json(_ value: some Encodable) -> JSON {
        (try? JSONCoding.encoder().encode(value)).flatMap { try? JSON(parsing: $0) } ?? .null
    }
}

/// A resource at `/mcp`, identified by its URI.
enum BrokerResource: Hashable, Sendable {
    case endpoints
    case endpoint(EndpointID)
    case devices

    private static let endpointPrefix = "patchbay://endpoint/"

    init?(_ uri: String) {
        switch uri {
        case "patchbay://endpoints": self = .endpoints
        case "patchbay://devices": self = .devices
        default:
            guard uri.hasPrefix(Self.endpointPrefix), let id = EndpointID(uri.dropFirst(Self.endpointPrefix.count))
            else {
                return nil
            }
            self = .endpoint(id)
        }
    }

    var uri: String {
        switch self {
        case .endpoints: "patchbay://endpoints"
        case .endpoint(let id): Self.endpointPrefix + id.text
        case .devices: "patchbay://devices"
        }
    }

    var json: JSON {
        let name =
            switch self {
            case .endpoints: "endpoints"
            case .endpoint(let id): id.text
            case .devices: "devices"
            }
        return ["uri": .string(uri), "name": .string(name), "mimeType": "application/json"]
    }

    static let templates: JSON = [
        ["uriTemplate": "patchbay://endpoint/{id}", "name": "endpoint", "mimeType": "application/json"],
        [
            "uriTemplate": "patchbay://artifact/{sha}", "name": "artifact",
            "description": "Content too large for a result; kept for an hour",
        ],
    ]
}

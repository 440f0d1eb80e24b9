import HTTPTypes
import Model
import Testing

@testable import API

/// Query parameters that do not exist, at every route.
@Suite struct QueryParameterTests {
    /// The routes of the API. MCP servers, health checks and scrapers may be asked with any query.
    private static let routes = RouteTable.all.filter { $0.kind == .resource }

    @Test func `the routes under v1 are the resources, and those of an MCP server end with its name`() {
        for route in RouteTable.all {
            let kind: APIRoute.Kind =
                route.path.hasPrefix("/v1/") ? .resource : route.path.hasSuffix("/mcp") ? .mcpServer : .document
            #expect(route.kind == kind, "\(route.path)")
        }
    }

    private func detail(_ names: [String], _ route: APIRoute) -> String? {
        do { try QueryParameterCheck.check(names, of: route) } catch { return error.detail }
        return nil
    }

    @Test func `every route refuses an unknown, a misspelt and a repeated query parameter`() throws {
        #expect(!Self.routes.isEmpty)
        for route in Self.routes {
            let names = route.query.map(\.name)
            #expect(detail([], route) == nil && detail(names, route) == nil, "\(route.path)")
            let refused = try #require(detail(names + ["zzz"], route), "\(route.path)")
            #expect(refused.hasPrefix(#"there is no query parameter "zzz"; "#), "\(refused)")
            for name in names {
                let misspelt = String(name.prefix(1)) + name
                #expect(
                    detail([misspelt], route)
                        == "there is no query parameter \"\(misspelt)\"; did you mean \"\(name)\"?"
                )
                #expect(detail([name, name], route) == "the query has \"\(name)\" more than once")
            }
        }
    }

    @Test func `the OpenAPI document has the query parameters that a route accepts, and no others`() throws {
        let paths = try JSON(parsing: OpenAPIDocument.text)["paths"]
        for route in RouteTable.all {
            let operation = paths?[route.path]?[route.method.rawValue.lowercased()]
            let described = (operation?["parameters"]?.array ?? []).filter { $0["in"] == "query" }
            #expect(described.compactMap { $0["name"]?.string } == route.query.map(\.name), "\(route.path)")
        }
    }

    @Test func `a route without query parameters says so`() throws {
        let route = try #require(Self.routes.first { $0.path == "/v1/tunnels" && $0.method == .get })

        #expect(
            detail(["endpoint"], route) == #"there is no query parameter "endpoint"; there are no query parameters"#
        )
    }
}

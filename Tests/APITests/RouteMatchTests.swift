import HTTPTypes
import Model
import Testing

@testable import API

/// The route of a request, by its method and its path.
@Suite struct RouteMatchTests {
    @Test func `every route is found at its own path, with its parameters`() throws {
        for route in RouteTable.all {
            let path = route.path.replacing("{", with: "x-").replacing("}", with: "")
            let (found, parameters) = try RouteTable.route(route.method, path)
            #expect(found.path == route.path)
            for (name, value) in parameters { #expect(value == "x-\(name)") }
            #expect(parameters.count == route.path.count { $0 == "{" })
        }
    }

    @Test func `a parameter is passed on as the client sent it`() throws {
        let (route, parameters) = try RouteTable.route(.get, "/v1/endpoints/a%2Fb")

        #expect(route.path == "/v1/endpoints/{id}")
        #expect(parameters == ["id": "a%2Fb"])
    }

    @Test func `an unknown path and another method have different problems`() throws {
        #expect { try RouteTable.route(.get, "/v1/nothing") } throws: { ($0 as? Problem)?.code == .notFound }
        #expect { try RouteTable.route(.put, "/v1/status") } throws: { error in
            let problem = error as? Problem
            return problem?.code == .methodNotAllowed && problem?.detail == "/v1/status takes GET, not PUT"
        }
        #expect(RouteTable.methods(at: "/v1/tunnels/all").sorted() == ["DELETE", "GET", "POST"])
    }
}

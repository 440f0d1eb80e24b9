import FoundationEssentials
import HTTPTypes
import Model

/// `openapi.json` (OpenAPI 3.1), made from the route table and the schemas beside this file.
enum OpenAPIDocument {
    /// Made once: neither the table nor the schemas change while we run.
    static let text: String = {
        let paths = Dictionary(grouping: RouteTable.all, by: \.path).sorted { $0.key < $1.key }.map { path, routes in
            let operations = routes.map { "\"\($0.method.rawValue.lowercased())\":\(operation($0))" }
            return "\"\(path)\":{\(operations.joined(separator: ","))}"
        }
        return """
            {"openapi":"3.1.0","info":{"title":"Patchbay","version":"\(Version.text)",\
            "description":"One list of everything debuggable that can be reached, and tunnels to it."},\
            "paths":{\(paths.joined(separator: ","))},"components":{"schemas":\(OpenAPISchemas.text)}}
            """
    }()

    private static func operation(_ route: APIRoute) -> String {
        var members = [
            "\"summary\":\"\(route.summary)\"", "\"operationId\":\"\(operationID(route))\"",
            "\"responses\":{\(response(route)),\"default\":{\"description\":\"What went wrong\",\(content("application/problem+json", "Problem"))}}",
        ]
        let inPath = route.path.split(separator: "/").filter { $0.hasPrefix("{") }.map {
            """
            {"name":"\($0.dropFirst().dropLast())","in":"path","required":true,"schema":{"type":"string"}}
            """
        }
        let inQuery = route.query.map {
            """
            {"name":"\($0.name)","in":"query","required":false,"description":"\($0.summary)",\
            "schema":{"type":"\($0.kind.rawValue)"}}
            """
        }
        let parameters = inPath + inQuery
        if !parameters.isEmpty { members.append("\"parameters\":[\(parameters.joined(separator: ","))]") }
        if let takes = route.takes {
            members.append("\"requestBody\":{\"required\":true,\(content("application/json", takes))}")
        }
        return "{\(members.joined(separator: ","))}"
    }

    private static func response(_ route: APIRoute) -> String {
        switch route.gives {
        case nil: "\"204\":{\"description\":\"Done\"}"
        case "events"?: "\"200\":{\"description\":\"Server-sent events\",\"content\":{\"text/event-stream\":{}}}"
        case "file"?: "\"200\":{\"description\":\"The bytes, with their own type\",\"content\":{\"*/*\":{}}}"
        case "MCPMessage"?:
            """
            "200":{"description":"The answer","content":{"text/event-stream":{},\
            "application/json":{"schema":{"$ref":"#/components/schemas/MCPMessage"}}}},\
            "202":{"description":"Taken; there is no answer"}
            """
        case "ServerCard"?, "Catalog"?:
            "\"200\":{\"description\":\"Experimental\",\(content(ServerCardRoutes.type(of: route.gives), route.gives ?? ""))}"
        case let gives?:
            "\"\(route.creates ? 201 : 200)\":{\"description\":\"\(gives)\",\(content("application/json", gives))}"
        }
    }

    private static func content(_ media: String, _ schema: String) -> String {
        "\"content\":{\"\(media)\":{\"schema\":{\"$ref\":\"#/components/schemas/\(schema)\"}}}"
    }

    private static func operationID(_ route: APIRoute) -> String {
        let words = route.path.split(separator: "/").map { $0.filter { $0.isLetter || $0.isNumber } }
        return ([route.method.rawValue.lowercased()] + words).joined(separator: "-")
    }
}

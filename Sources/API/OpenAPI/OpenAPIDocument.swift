import FoundationEssentials
import HTTPTypes
import Model

/// `openapi.json` (OpenAPI 3.1), generated from the route table and `OpenAPISchemas`.
enum OpenAPIDocument {
    /// Generated once, because the table and the schemas are constants.
    static let text: String = {
        let paths = Dictionary(grouping: RouteTable.all, by: \.path).sorted { $0.key < $1.key }.map { path, routes in
            let operations = routes.map { "\"\($0.method.rawValue.lowercased())\":\(operation($0))" }
            return "\"\(path)\":{\(operations.joined(separator: ","))}"
        }
        return """
            {"openapi":"3.1.0","info":{"title":"Patchbay","version":"\(Version.text)",\
            "description":"Finds debug servers in development builds of apps, forwards local ports to them, and exposes them to AI agents over MCP."},\
            "paths":{\(paths.joined(separator: ","))},"components":{"schemas":\(OpenAPISchemas.text)}}
            """
    }()

    private static func operation(_ route: APIRoute) -> String {
        var members = [
            "\"summary\":\"\(route.summary)\"", "\"operationId\":\"\(operationID(route))\"",
            "\"responses\":{\(response(route)),\(unavailable(route))\(errors(of: route))}",
        ]
        let inPath = route.path.split(separator: "/").filter { $0.hasPrefix("{") }.map {
            """
            {"name":"\($0.dropFirst().dropLast())","in":"path","required":true,"schema":{"type":"string"}}
            """
        }
        let inQuery = route.query.map {
            """
            {"name":"\($0.name)","in":"query","required":false,"description":"\($0.summary)",\
            "schema":{"type":"\($0.type.rawValue)"}}
            """
        }
        let parameters = inPath + inQuery
        if !parameters.isEmpty { members.append("\"parameters\":[\(parameters.joined(separator: ","))]") }
        if let schema = route.requestSchema {
            let isRequired = schema != "AccessRequestLimits"
            members.append("\"requestBody\":{\"required\":\(isRequired),\(content("application/json", schema))}")
        }
        return "{\(members.joined(separator: ","))}"
    }

    /// Returns the member `503` of the responses, with its comma; nothing for a route that depends on no other program.
    private static func unavailable(_ route: APIRoute) -> String {
        guard let reason = route.unavailableWhen else { return "" }
        return "\"503\":{\"description\":\"\(reason)\",\(content("application/problem+json", "Problem"))},"
    }

    /// Returns the response for every other status. MCP has errors of its own, as messages.
    private static func errors(of route: APIRoute) -> String {
        guard route.kind == .mcpServer else {
            return "\"default\":{\"description\":\"The error\",\(content("application/problem+json", "Problem"))}"
        }
        return """
            "default":{"description":"The error: a JSON-RPC message, or a problem if the MCP server was not asked",\
            "content":{"application/json":{"schema":{"$ref":"#/components/schemas/MCPMessage"}},\
            "application/problem+json":{"schema":{"$ref":"#/components/schemas/Problem"}}}}
            """
    }

    private static func response(_ route: APIRoute) -> String {
        switch route.responseSchema {
        case nil: "\"204\":{\"description\":\"Success, without a body\"\(headers(route))}"
        case "events"?: "\"200\":{\"description\":\"Server-sent events\",\"content\":{\"text/event-stream\":{}}}"
        case "PhoneLog"?:
            """
            "200":{"description":"The log","content":{"text/event-stream":{},\
            "application/json":{"schema":{"$ref":"#/components/schemas/PhoneLog"}}}}
            """
        case "stream"?: "\"101\":{\"description\":\"The connection is a byte stream from now on\"}"
        case "metrics"?:
            """
            "200":{"description":"Metrics as text, format 0.0.4",\
            "content":{"text/plain; version=0.0.4; charset=utf-8":{}}}
            """
        case "file"?: "\"200\":{\"description\":\"The file, with its own media type\",\"content\":{\"*/*\":{}}}"
        case "MCPMessage"?:
            """
            "200":{"description":"The response message","content":{"text/event-stream":{},\
            "application/json":{"schema":{"$ref":"#/components/schemas/MCPMessage"}}}},\
            "202":{"description":"Accepted; there is no response message"}
            """
        case "ServerCard"?, "Catalog"?:
            """
            "200":{"description":"An experimental document",\
            \(content(ServerCardRoutes.type(of: route.responseSchema), route.responseSchema ?? ""))},\
            "304":{"description":"The document still has the entity tag of If-None-Match"}
            """
        case let schema?:
            "\"\(route.returnsCreated ? 201 : 200)\":{\"description\":\"\(schema)\",\(content("application/json", schema))}"
        }
    }

    /// Returns the member `headers` of a response, with its comma; nothing for a route without a header of its own.
    private static func headers(_ route: APIRoute) -> String {
        guard let header = route.responseHeader else { return "" }
        let values = header.values.map { "\"\($0)\"" }.joined(separator: ",")
        return """
            ,"headers":{"\(header.name)":{"description":"\(header.summary)",\
            "schema":{"type":"string","enum":[\(values)]}}}
            """
    }

    private static func content(_ media: String, _ schema: String) -> String {
        "\"content\":{\"\(media)\":{\"schema\":{\"$ref\":\"#/components/schemas/\(schema)\"}}}"
    }

    private static func operationID(_ route: APIRoute) -> String {
        let parts = route.path.split(separator: "/").map { $0.filter { $0.isLetter || $0.isNumber } }
        return ([route.method.rawValue.lowercased()] + parts).joined(separator: "-")
    }
}

import Model
import Testing

@testable import API

/// Request bodies with members that do not exist.
@Suite struct UnknownMemberTests {
    /// Every schema of a request body. MCP defines its own messages.
    static let schemas = Set(RouteTable.all.compactMap(\.requestSchema)).subtracting(["MCPMessage"]).sorted()

    private func problem(_ body: JSON, _ schema: String?) -> String? {
        do { try UnknownMemberCheck.check(body, against: schema) } catch { return error.detail }
        return nil
    }

    @Test(arguments: schemas)
    func `every body of the API is refused with an unknown member, at each depth, and with each misspelt member`(
        schema: String
    ) throws {
        let bodies = try SampleBodies.all(of: schema)
        #expect(!bodies.isEmpty)
        for body in bodies {
            #expect(problem(body, schema) == nil, "\(body)")
            for (mutated, unknown) in Self.withUnknownMember(body) {
                let said = try #require(problem(mutated, schema), "\(mutated)")
                #expect(said.hasPrefix("there is no member \"\(unknown)\""), "\(said)")
            }
            // No name is near to one of a single letter; the message lists the names instead.
            for (mutated, misspelt, name) in Self.misspelt(body) where name.utf8.count > 1 {
                let said = try #require(problem(mutated, schema), "\(mutated)")
                #expect(said == "there is no member \"\(misspelt)\"; did you mean \"\(name)\"?")
            }
        }
    }

    @Test(arguments: [
        ("ApprovalSpec", #"{"adress":"10.98.0.99"}"#, #""adress"; did you mean "address"?"#),
        (
            "InviteSpec", #"{"permissions":{"scopes":["endpoint.call"],"selector":"all","tool":"read-only"}}"#,
            #""permissions.tool"; did you mean "tools"?"#
        ),
        (
            "InviteSpec", #"{"permissions":{"scopes":["endpoint.call"],"selector":"all","Tools":"read-only"}}"#,
            #""permissions.Tools"; did you mean "tools"?"#
        ),
        (
            "InviteSpec", #"{"permissions":{"scopes":["endpoint.call"],"selector":"all"},"tools":"read-only"}"#,
            #""tools"; did you mean "permissions.tools"?"#
        ),
        ("LeaseSpec", #"{"endpoint":"shop","second":60}"#, #""second"; did you mean "seconds"?"#),
        (
            "RegistrationSpec", #"{"app":"a","port":9000,"protocol":"mcp","launchId":"7f3a"}"#,
            #""launchId"; did you mean "launchID"?"#
        ),
        (
            "TunnelSpecs", #"[{"local":"tcp:0","target":{"endpont":"shop"},"noRebind":true,"persistent":false}]"#,
            #""[0].target.endpont"; did you mean "endpoint"?"#
        ),
        (
            "TunnelSpec",
            #"{"local":"tcp:0","target":{"device":{"udid":"x","portt":1}},"noRebind":true,"persistent":false}"#,
            #""target.device.portt"; did you mean "port"?"#
        ),
        (
            "RedemptionSpec",
            #"{"token":"t","client":"c","name":"n","permissions":{"scopes":[],"selector":{"endpoints":[],"hosts":[]}}}"#,
            #""permissions.selector.hosts"; the members are endpoints"#
        ),
    ])
    func `the refusal names the member and the nearest existing one`(schema: String, body: String, end: String) throws {
        let said = try #require(problem(try JSON(parsing: body), schema))

        #expect(said == "there is no member \(end)")
    }

    @Test func `a request without a body has no members`() throws {
        #expect(problem([:], nil) == nil)
        #expect(problem(["address": "10.98.0.99"], nil) == #"there is no member "address"; there are no members"#)
    }

    @Test func `the arguments of a tool may have any name`() {
        #expect(problem(["tool": "tap", "arguments": ["x": 1, "anything": ["y": 2]]], "ToolCallRequest") == nil)
        #expect(problem(["tool": "tap", "argument": [:]], "ToolCallRequest") != nil)
    }

    /// Returns the body with one more member in each of its objects, and the path of that member.
    private static func withUnknownMember(_ body: JSON) -> [(JSON, path: String)] {
        mutations(of: body) { object, path in
            let name = "zzz"
            var object = object
            object[name] = 1
            return [(object, path + name, "")]
        }.map { ($0.0, $0.1) }
    }

    /// Returns the body with each member misspelt, one at a time.
    private static func misspelt(_ body: JSON) -> [(JSON, path: String, name: String)] {
        mutations(of: body) { object, path in
            object.members.indices.map { index in
                let name = object.members[index].name
                var members = object.members
                let misspelt = String(name.prefix(1)) + name
                members[index] = JSONObject.Member(name: misspelt, value: members[index].value)
                return (JSONObject(members), path + misspelt, name)
            }
        }
    }

    /// Applies `change` to each object in a value, one at a time. `path` ends with a dot, unless it is empty.
    private static func mutations(
        of value: JSON,
        at path: String = "",
        _ change: (JSONObject, _ path: String) -> [(JSONObject, String, String)]
    ) -> [(JSON, String, String)] {
        switch value {
        case .object(let object):
            var result = change(object, path.isEmpty ? "" : "\(path).").map { (JSON.object($0.0), $0.1, $0.2) }
            // Any name is allowed in the arguments of a tool.
            for member in object.members where member.name != "arguments" {
                let inner = path.isEmpty ? member.name : "\(path).\(member.name)"
                for (changed, place, name) in mutations(of: member.value, at: inner, change) {
                    var object = object
                    object[member.name] = changed
                    result.append((.object(object), place, name))
                }
            }
            return result
        case .array(let elements):
            return elements.enumerated().flatMap { index, element in
                mutations(of: element, at: "\(path)[\(index)]", change).map { changed, path, name in
                    var elements = elements
                    elements[index] = changed
                    return (.array(elements), path, name)
                }
            }
        case .null, .bool, .number, .string: return []
        }
    }
}

/// Bodies with every member of a schema, one for each combination of alternatives.
private enum SampleBodies {
    static func all(of schema: String) throws -> [JSON] {
        let schemas = try JSON(parsing: OpenAPISchemas.text)
        func samples(_ schema: JSON) -> [JSON] {
            if let name = schema["$ref"]?.string?.split(separator: "/").last {
                return samples(schemas[String(name)] ?? .null)
            }
            if let alternatives = schema["oneOf"]?.array { return alternatives.flatMap(samples) }
            if let items = schema["items"] { return samples(items).map { [$0] } }
            guard let properties = schema["properties"]?.object else {
                return schema["type"] == "object" ? [[:]] : ["x"]
            }
            // Every object of a request body is closed.
            #expect(schema["additionalProperties"] == false, "\(schema)")
            return properties.members.reduce(into: [JSONObject()]) { objects, property in
                objects = objects.flatMap { object in
                    samples(property.value).map { value in
                        var object = object
                        object[property.name] = value
                        return object
                    }
                }
            }.map(JSON.object)
        }
        return samples(["$ref": .string("/\(schema)")])
    }
}

import Testing

@testable import Model

@Suite struct JSONSchemaValidatorTests {
    private func problem(_ value: String, _ schema: String) throws -> String? {
        JSONSchemaValidator(try JSON(parsing: schema)) { _, names in "; not one of \(names)" }
            .problem(with: try JSON(parsing: value))
    }

    @Test(arguments: [
        (#"{"type":"integer"}"#, "5.5", "the value must be a whole number, but is a number"),
        (#"{"type":["integer","null"]}"#, #""x""#, "the value must be a whole number or null, but is a text"),
        (#"{"enum":["png","jpeg"]}"#, #""gif""#, #"the value must be one of "png", "jpeg", but is "gif""#),
        (#"{"const":1}"#, "2", "the value must be 1, but is 2"),
        (#"{"minimum":1}"#, "0.5", "the value is 0.5; it must be at least 1"),
        (#"{"exclusiveMaximum":1}"#, "1", "the value is 1; it must be less than 1"),
        (#"{"maxLength":2}"#, #""äöü""#, "the value has 3 characters; it must have at most 2"),
        (#"{"minItems":1}"#, "[]", "the value has 0 elements; it must have at least 1"),
    ])
    func `a value that the schema does not allow is refused with what it allows`(
        schema: String,
        value: String,
        problem: String
    ) throws { #expect(try self.problem(value, schema) == problem) }

    @Test(arguments: [
        (#"{"seconds":{"type":"number"}}"#, #"{"seconds":"x"}"#, #""seconds" must be a number, but is a text"#),
        (#"{"p":{"items":{"type":"integer"}}}"#, #"{"p":[1,true]}"#, #""p[1]" must be a whole number, but is true"#),
        (#"{"p":{"required":["x"]}}"#, #"{"p":{}}"#, #""p.x" is missing"#),
        (#"{"x":{}}"#, #"{"y":1}"#, #""y" is not an argument; not one of ["x"]"#),
    ])
    func `the message names the place of the wrong value`(properties: String, value: String, problem: String) throws {
        let schema = #"{"type":"object","additionalProperties":false,"properties":\#(properties)}"#

        #expect(try self.problem(value, schema) == problem)
    }

    @Test(arguments: [
        ("{}", #"{"x":1}"#), ("true", "1"), (#"{"type":"integer"}"#, "5.0"), (#"{"type":"integer"}"#, "1e30"),
        (#"{"enum":[1]}"#, "1.0"), (#"{"properties":{"x":{}}}"#, #"{"y":1}"#), (#"{"type":"any"}"#, "1"),
        (##"{"$ref":"#/x","type":"string"}"##, "1"), (#"{"minLength":"a","enum":1,"required":1,"items":1}"#, "[1]"),
        (#"{"additionalProperties":false,"patternProperties":{"^y":{}}}"#, #"{"y":1}"#),
    ])
    func `a value is accepted unless the schema refuses it`(schema: String, value: String) throws {
        #expect(try problem(value, schema) == nil)
    }

    @Test(arguments: [
        (##"{"$ref":"#/$defs/n","$defs":{"n":{"type":"integer"}}}"##, "true", "a whole number"),
        (#"{"allOf":[{"type":["integer","string"]},{"type":["number","null"]}]}"#, "true", "a whole number"),
        (#"{"anyOf":[{"type":"integer"},{"type":"string"}]}"#, "true", "a text or a whole number"),
        (#"{"oneOf":[{"type":"integer"},{"type":"null"}]}"#, "true", "a whole number or null"),
        (#"{"type":"integer","nullable":true}"#, "true", "a whole number or null"),
    ])
    func `references, combinations and null are looked through`(schema: String, value: String, type: String) throws {
        #expect(try problem(value, schema) == "the value must be \(type), but is true")
    }

    @Test(arguments: [
        ##"{"$ref":"#"}"##, ##"{"allOf":[{"$ref":"#"},{"$ref":"#"}]}"##, ##"{"anyOf":[{"$ref":"#"},{"$ref":"#"}]}"##,
        ##"{"$ref":"#/a","a":{"$ref":"#/b"},"b":{"$ref":"#/a"}}"##, ##"{"$ref":"other.json#/a"}"##,
        ##"{"properties":{"a":{"$ref":"#"}},"items":{"$ref":"#"},"allOf":[{"properties":{"a":{"$ref":"#"}}}]}"##,
    ])
    func `references in a cycle end and allow every value`(schema: String) throws {
        for value in [
            "1", "null", "[[[1]]]", String(repeating: #"{"a":"#, count: 100) + "1" + String(repeating: "}", count: 100),
        ] { #expect(try problem(value, schema) == nil) }
    }

    @Test func `a long list of allowed values is cut`() throws {
        let words = (0..<100).map { "\"value\($0)\"" }.joined(separator: ",")
        let problem = try #require(try problem("1", "{\"enum\":[\(words)]}"))

        #expect(problem.hasSuffix(", …, but is 1") && problem.utf8.count < 260)
    }
}

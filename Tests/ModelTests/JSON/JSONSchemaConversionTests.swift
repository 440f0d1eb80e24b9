import Testing

@testable import Model

@Suite struct JSONSchemaConversionTests {
    private func converted(_ value: String, _ schema: String) throws -> (text: String, conversions: [String]) {
        let converted = JSONSchemaNode(try JSON(parsing: schema)).converted(try JSON(parsing: value))
        return (converted.value.text, converted.conversions)
    }

    @Test(arguments: [
        (#"{"type":"integer"}"#, #""-5""#, "-5", "text to integer"),
        (#"{"type":"number"}"#, #""5.50""#, "5.50", "text to number"),
        (#"{"type":"boolean"}"#, #""false""#, "false", "text to boolean"),
        (#"{"type":"string"}"#, "1.0", #""1.0""#, "number to text"),
        (#"{"type":"array"}"#, #""[1, 2]""#, "[1,2]", "text to list"),
        (#"{"type":["object","null"]}"#, #""{\"a\": 1}""#, #"{"a":1}"#, "text to object"),
        (#"{"enum":["1","2"]}"#, "1", #""1""#, "number to text"),
        (#"{"enum":[1,2]}"#, #""2""#, "2", "text to integer"),
        (#"{"anyOf":[{"type":"integer"},{"type":"null"}]}"#, #""5""#, "5", "text to integer"),
        (##"{"$ref":"#/$defs/n","$defs":{"n":{"allOf":[{"type":"integer"}]}}}"##, #""5""#, "5", "text to integer"),
    ])
    func `a value is converted if the schema has one type and the conversion is exact`(
        schema: String,
        value: String,
        text: String,
        conversion: String
    ) throws {
        let converted = try converted(value, schema)

        #expect(converted.text == text && converted.conversions == [conversion])
    }

    @Test(arguments: [
        (#"{"type":"integer"}"#, #""5.0""#), (#"{"type":"integer"}"#, #""1e3""#), (#"{"type":"integer"}"#, #"" 5""#),
        (#"{"type":"integer"}"#, #""007""#), (#"{"type":"integer"}"#, #""""#), (#"{"type":"number"}"#, #""0x1F""#),
        (#"{"type":"boolean"}"#, #""True""#), (#"{"type":"boolean"}"#, "1"), (#"{"type":"string"}"#, "true"),
        (#"{"type":"array"}"#, #""{}""#), (#"{"type":"array"}"#, #""[1""#), (#"{"type":"object"}"#, "[]"),
        (#"{"type":["integer","boolean"]}"#, #""1""#), (#"{"type":["integer","string"]}"#, #""1""#), ("{}", #""1""#),
        (#"{"oneOf":[{"type":"integer"},{"type":"boolean"}]}"#, #""1""#), (#"{"enum":[1,"auto"]}"#, #""1""#),
    ])
    func `any other value stays as it is`(schema: String, value: String) throws {
        let converted = try converted(value, schema)

        #expect(try converted.text == JSON(parsing: value).text && converted.conversions.isEmpty)
    }

    @Test(arguments: [
        (#"{"type":"string"}"#, "{}"), (#"{"type":"string","enum":["a"]}"#, "{}"), (#"{"enum":["a"]}"#, "{}"),
        (#"{"type":["string","null"]}"#, #"{"a":null}"#), (#"{"type":"string","nullable":true}"#, #"{"a":null}"#),
        (#"{"enum":["a",null]}"#, #"{"a":null}"#), (#"{"anyOf":[{"type":"string"},{"type":"null"}]}"#, #"{"a":null}"#),
        ("{}", #"{"a":null}"#),
    ])
    func `null for an optional member is left out unless the schema allows null`(property: String, text: String) throws
    {
        let optional = try converted(#"{"a":null}"#, #"{"properties":{"a":\#(property)}}"#)
        let required = try converted(#"{"a":null}"#, #"{"properties":{"a":\#(property)},"required":["a"]}"#)

        #expect(optional.text == text && optional.conversions == (text == "{}" ? ["null left out"] : []))
        #expect(required.text == #"{"a":null}"# && required.conversions.isEmpty)
    }

    @Test func `members and elements are converted at every depth`() throws {
        let schema = #"{"properties":{"p":{"type":"array","items":{"properties":{"x":{"type":"integer"}}}}}}"#

        let converted = try converted(#"{"p":"[{\"x\": \"1\", \"y\": \"2\"}]","q":"3"}"#, schema)

        #expect(converted.text == #"{"p":[{"x":1,"y":"2"}],"q":"3"}"#)
        #expect(converted.conversions == ["text to list", "text to integer"])
    }
}

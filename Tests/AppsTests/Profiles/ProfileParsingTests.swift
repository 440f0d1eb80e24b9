import Apps
import Model
import TOML
import Testing

/// Each mistake in a file is an error with file, position, key and valid form.
@Suite struct ProfileParsingTests {
    static let minimal = """
        name = "sample"

        [[recognition]]
        path = "/actions"
        json = { type = "array" }

        [[tool]]
        name = "screenshot"
        description = "Returns a picture."
        path = "/screenshot"

        """

    private static func message(_ text: String) -> String {
        do {
            _ = try Profile(parsing: text, file: "sample.toml")
            return "no error"
        } catch { return error.description }
    }

    @Test(arguments: ShippedProfile.names)
    func `a shipped profile is valid and named like its file`(name: String) throws {
        let profile = try ShippedProfile.load(name)

        #expect(profile.name == name)
        #expect(profile.kind == EndpointKind(name))
        #expect(!profile.tools.isEmpty && profile.timeoutHint != nil)
        // These servers run on machines.
        #expect(profile.ports.isEmpty == ["mobilecli", "simlock"].contains(name))
    }

    @Test func `a profile without optional keys has defaults`() throws {
        let profile = try Profile(parsing: Self.minimal, file: "sample.toml")

        #expect(profile.title == "sample")
        #expect(profile.authentication == .none)
        #expect(profile.ports == [])
        #expect(profile.tools.map(\.timeout) == [.seconds(15)])
    }

    /// A mistake in a text, or before or after a valid one, and the beginning of its message.
    struct Mistake: Sendable, CustomTestStringConvertible {
        let text: String
        let message: String
        var testDescription: String { message }

        init(_ text: String, _ message: String) {
            self.text = text
            self.message = "sample.toml:\(message)"
        }

        init(before text: String, _ message: String) { self.init(text + minimal, message) }
        init(after text: String, _ message: String) { self.init(minimal + text, message) }
    }

    static let mistakes: [Mistake] = [
        Mistake("name = ", "1:8: a value is missing after =; write key = value"),
        Mistake(before: "ports = [}\n", "1:10: } cannot be here; write key = value or [table]"),
        Mistake(after: "[!]\n", "11:2: ! cannot be here; write key = value or [table]"),
        Mistake("name = \"a\u{0}\"", "1:1: the file is not text"),
        Mistake(before: "titel = 1\n", #"1: titel: there is no such key; did you mean "title"?"#),
        Mistake(
            after: "timout = 3\n",
            #"11: [[tool]] number 1: timout: there is no such key; did you mean "timeout"?"#
        ),
        Mistake(
            after: "method = 'PATCH'\n",
            #"11: [[tool]] number 1: method must be one of GET, POST, PUT, DELETE, but is "PATCH""#
        ),
        Mistake(
            after: "timeout = '3'\n",
            #"11: [[tool]] number 1: timeout must be a time in quotes such as "90s" or "10m", from 1s to 10m, but is "3""#
        ),
        Mistake(
            after: "timeout = '11m'\n",
            #"11: [[tool]] number 1: timeout must be a time in quotes such as "90s" or "10m", from 1s to 10m, but is "11m""#
        ),
        Mistake(before: "ports = [9876, 0]\n", "1: ports, item 2 must be a number from 1 to 65535, but is 0"),
        Mistake(before: "ports = 9876\n", "1: ports must be a list of values in [], but is 9876: write ports = [9876]"),
        Mistake(before: "ports = [1, 2, 3, 4, 5, 6, 7, 8, 9]\n", "1: ports has 9 ports; at most 8 are possible"),
        Mistake(before: "title = 1979-05-27\n", "1: title must not be a date"),
        Mistake(
            "name = 'sample'\n[[recognition]]\npath = '/'\njson = {}\n[[tool]]\nname = 'x'\ndescription = 'x'\n",
            "5: [[tool]] number 1: path is missing; it must be a path on the server itself, such as "
                + "\"/state/{key}\""
        ),
        Mistake(
            "name = 'sample'\n[[recognition]]\npath = '/'\n[[tool]]\n",
            "2: recognition must have a request with json, or other servers would match"
        ),
        Mistake(
            "name = 'sample'\n[[recognition]]\npath = '/'\njson = {}\n",
            "1: tool is missing; a profile needs a [[tool]] or [functions]"
        ),
        Mistake("name = 'mcp'\n", "1: name is \"mcp\", which is one of Patchbay's own kinds; use another name"),
        Mistake(
            after: "body = '{\"a\": '\nmethod = 'POST'\n",
            "11: [[tool]] number 1: body must be JSON; it is invalid at byte 6"
        ),
        Mistake(after: "body = '1'\n", "11: [[tool]] number 1: body is not possible with the method GET"),
        Mistake(after: "session = true\n", "11: [[tool]] number 1: session is true, but the profile has no [session]"),
        Mistake(
            after: "required = ['x']\n",
            "11: [[tool]] number 1: required has \"x\", which is not an argument; there are no arguments"
        ),
        Mistake(
            after: "arguments.identifier = { type = 'strnig' }\n",
            "11: [[tool]] number 1: arguments.identifier.type must be one of string, number, integer, "
                + "boolean, array, object, null, but is \"strnig\""
        ),
        Mistake(
            after: "arguments.identifier = { typ = 'string' }\n",
            "11: [[tool]] number 1: arguments.identifier.typ: there is no such key; did you mean \"type\"?"
        ),
        Mistake(
            after: "arguments.identifier = { type = 'string' }\n",
            "11: [[tool]] number 1: arguments has \"identifier\", which neither the request nor the "
                + "result uses"
        ),
        Mistake(
            after: "result = { type = 'json', pointer = 'value' }\n",
            "11: [[tool]] number 1: result.pointer must be a JSON pointer, such as \"/value/name\", "
                + "but is \"value\""
        ),
        Mistake(
            after: "[[tool]]\nname = 'screenshot'\ndescription = 'x'\npath = '/x'\n",
            "12: [[tool]] number 2: name is \"screenshot\", which is the name of another tool"
        ),
        Mistake(
            after: "[[limit]]\ntext = 'no taps'\ninstead = 'screenshots'\n",
            "13: [[limit]] number 1: instead is \"screenshots\", which is not a tool; did you mean "
                + "\"screenshot\"?"
        ),
        Mistake(
            after: "[authentication]\ntype = 'basic'\n",
            "12: authentication.type must be \"none\", \"bearer\" or \"exchange\", but is \"basic\""
        ),
        Mistake(
            after: "[session]\nheader = 'Host'\n",
            "12: session.header must be the name of a header that begins with \"X-\", but is \"Host\""
        ),
        Mistake(
            after: "[identity]\napp.path = '/health'\n",
            "12: identity.app.path must be a path of [[recognition]]: /actions"
        ),
        Mistake(after: "rpc = 'x'\n", "10: [[tool]] number 1: path: there is no such key"),
    ]

    @Test(arguments: mistakes)
    func `a mistake is reported with its position, its key and the valid form`(mistake: Mistake) {
        let message = Self.message(mistake.text)
        let withoutColumn = message.replacing(#/^(sample.toml:[0-9]+):[0-9]+: /#) { "\($0.output.1): " }
        // Only the mistakes in the syntax have a column.
        #expect([message, withoutColumn].contains { $0.hasPrefix(mistake.message) }, "\(message)")
    }

    @Test(arguments: [
        "http://example.com/x", "//example.com/x", "/a//b", "x", "", "/../x", "/a/..", "/./x", "/a\\r\\nHost: b",
        "/a b",
        "/%2e%2e/x", "/a#b", "/a\\\\b", "/{a}b", "/a?b", "/a?{b}=1", "/a?b=..", "/a?b=c?d", "/é",
    ]) func `a path that is not on the server itself is rejected`(path: String) {
        let text = Self.minimal.replacing("\"/screenshot\"", with: "\"\(path)\"")

        #expect(Self.message(text).hasPrefix("sample.toml:10:1: [[tool]] number 1: path must be a path"))
    }

    @Test(arguments: [
        ("/x/{key}", "path has the placeholder {key}, so the argument must be in required"),
        ("/x/{kye}", "path has the placeholder {kye}, which is not an argument; did you mean \"key\"?"),
        ("/x/{session}", "path has the placeholder {session}, which is not an argument; the arguments are key"),
    ]) func `a placeholder must be an argument that has a value`(path: String, expected: String) {
        let text =
            Self.minimal.replacing("/screenshot", with: path) + "arguments.key = { type = 'string' }\n"

        #expect(Self.message(text) == "sample.toml:10:1: [[tool]] number 1: \(expected)")
    }

    @Test func `positions are right behind comments, multi-line texts and lists`() {
        let text = """
            # "a comment" = ['
            name = \"\"\"sam\\
            ple\"\"\"
            title = '''it's ""quoted'' '''
            ports = [
                1, # [
                2,
                "three",
            ]

            """

        #expect(
            Self.message(text)
                == "sample.toml:8:5: ports, item 3 must be a number from 1 to 65535, but is \"three\""
        )
    }

    @Test func `a message has no control characters of the file`() {
        let message = Self.message("\"a\\u001b[31m\" = 1\n")

        #expect(message.hasPrefix("sample.toml:1:1: a\u{FFFD}[31m: there is no such key"))
    }
}

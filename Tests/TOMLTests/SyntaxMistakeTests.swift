import TOML
import Testing

/// Each syntax error is in words, with the next step.
@Suite struct SyntaxMistakeTests {
    @Test(arguments: [
        ("nonsense = = 1", "1:12: a value is missing after =; write key = value, or remove the line"),
        ("a =\nb = 1\n", "1:4: a value is missing after =; write key = value, or remove the line"),
        ("a = # 1\n", "1:5: a value is missing after =; write key = value, or remove the line"),
        ("= 3", "1:1: a key is missing before =; write key = value"),
        ("a \"b\"", "1:3: there is no = after the key; write key = value"),
        ("a: 1", "1:2: there is no = after the key; write key = value"),
        ("foo bar = 1", "1:5: there is no = after the key; write key = value"),
        ("a = debug", "1:5: text needs quotes; write \"debug\""),
        ("a = /run/x # the socket", "1:5: text needs quotes; write \"/run/x\""),
        ("a = ‘debug’", "1:5: these quotes are no quotes of TOML; write \"debug\""),
        ("a = yes", "1:5: \"yes\" is no value; write true or false, or put text in quotes"),
        ("a = True", "1:5: \"True\" is no value; write true or false, or put text in quotes"),
        ("a = @", "1:5: \"@\" is no value; write a number, true, false, or text in quotes"),
        ("a = 12 34", "1:8: more text follows the value; put the whole text in quotes, or begin a new line"),
        ("a = 08", "1:7: a number cannot begin with 0; remove the zero, or put text in quotes"),
        ("a = 1.2.3", "1:8: this is not a number; put text in quotes"),
        ("a = 99999999999999999999999", "1:28: the number is too large; write a smaller one"),
        ("a = 2020-13-01", "1:12: this is not a date or a time; put text in quotes"),
        ("a = 1,000", "1:6: , cannot be here; write key = value or [table], and text in quotes"),
        ("a = [1 2]", "1:8: a comma is missing between two values; write [1, 2]"),
        ("a = [1,, 2]", "1:8: a value is missing between two commas; remove one of them"),
        ("a = { b = 1, }", "1:14: a comma stands before }; remove it"),
        ("a = 1\na = 2", "2:5: \"a\" is in the file already; keep one of the two"),
        ("[b]\n[b]\n", "2:1: \"b\" is in the file already; keep one of the two"),
        ("[b\na = 1\n", "1:3: there is no ] after the name of the table; write [table]"),
        ("[b] a = 1", "1:5: more text follows the ]; put each key on a line of its own below the [table]"),
        ("[]", "1:2: ] cannot be here; write key = value or [table], and text in quotes"),
        ("[b]]", "1:4: ] cannot be here; write key = value or [table], and text in quotes"),
        ("[b.\n", "1:4: the end of the line cannot be here; write key = value or [table], and text in quotes"),
        ("a = \"C:\\qt\"", "1:9: a backslash has another meaning in \"…\"; write \\\\ for it, or put the text in '…'"),
    ]) func `a syntax error names the mistake and the next step`(text: String, message: String) {
        let error = #expect(throws: TOMLError.self) { try TOMLDocument(parsing: text, file: "a.toml") }
        let words = error?.description ?? ""
        #expect(words.hasPrefix("a.toml:\(message)"), "\(words)")
    }
}

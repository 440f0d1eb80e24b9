import TOML
import Testing

/// A list or a text without its end is a mistake at another place than the one where a parser stops.
@Suite struct UnclosedTextTests {
    private static func message(_ text: String) -> String {
        do {
            _ = try TOMLDocument(parsing: text, file: "a.toml")
            return "no error"
        } catch { return error.description }
    }

    @Test(arguments: [
        ("[a]\nports = [1, 2\n[b]\nc = 3\n", "a.toml:3:1: expected , or ] of the list that begins in line 2, column 9"),
        (
            "ports = [1,\n  2,\n\nname = 3\n",
            "a.toml:5:1: there is no ] at the end of the list that begins in line 1, column 9"
        ),
        ("a = [[1, 2], [3\n", "a.toml:2:1: there is no ] at the end of the list that begins in line 1, column 14"),
        ("a = { b = 1\nc = 2\n", "a.toml:2:1: expected , or } of the table that begins in line 1, column 5"),
    ]) func `an unclosed list is reported with the place where it begins`(text: String, message: String) {
        #expect(Self.message(text) == message)
    }

    @Test(arguments: [
        ("a = 1\nb = \"x\nc = \"y\"\n", "a.toml:2:5: the text that begins here has no quote at its end"),
        ("b = \"\"\"x\nc = 3\n", "a.toml:1:5: the text that begins here has no quote at its end"),
    ]) func `an unclosed text is reported where it begins`(text: String, message: String) {
        #expect(Self.message(text) == message)
    }

    @Test(arguments: [
        "a = [1, 2,] # ]\n", "a = [ # [\n  1\n  , 2\n]\n", "a = [[], [{ b = '[' }]]\n", "a = {}\nb = [1979-05-27]\n",
        "a = \"\"\"\nx\"y\"\"\"\"\nb = ''\n", "a = [\"\"\"x\n\"\"\", 'y']\n",
    ]) func `valid text has no such error`(text: String) { #expect(!Self.message(text).contains("begins")) }
}

import Model
import Testing

@Suite struct ShellQuotingTests {
    @Test(arguments: [
        ("/var/lib/patchbay-1.0", "/var/lib/patchbay-1.0"), ("a b", "'a b'"), ("a;id", "'a;id'"), ("", "''"),
        ("it's", #"'it'\''s'"#), ("$HOME", "'$HOME'"), ("~x", "'~x'"),
    ])
    func `a text is one word of the shell`(text: String, word: String) { #expect(text.shellQuoted == word) }
}

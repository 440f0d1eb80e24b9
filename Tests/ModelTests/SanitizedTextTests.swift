import Model
import Testing

@Suite struct SanitizedTextTests {
    @Test(arguments: [
        "\u{1B}[31mred", "two\nlines", "carriage\rreturn", "bell\u{07}", "nul\u{0}", "c1\u{9B}31m",
        "bidi\u{202E}txt", "isolate\u{2066}x", "zero\u{200B}width", "joiner\u{200D}", "bom\u{FEFF}", "line\u{2028}sep",
        "soft\u{AD}hyphen", "tag\u{E0041}", "private\u{E000}", "mark\u{200F}",
    ])
    func `characters that move the cursor or hide text are replaced`(raw: String) {
        let clean = SanitizedText(raw).text

        #expect(clean.contains("\u{FFFD}"))
        #expect(clean.unicodeScalars.count == raw.unicodeScalars.count)
    }

    @Test(arguments: ["Ana’s iPhone", "面談アプリ", "AppReveal-com.example.shop (2)", "naïve \\ \"quoted\" %s", "🚀 rocket"])
    func `ordinary names are unchanged`(raw: String) { #expect(SanitizedText(raw).text == raw) }

    @Test func `a long name is truncated between characters`() {
        let clean = SanitizedText(String(repeating: "é", count: 100)).text

        #expect(clean.utf8.count <= SanitizedText.nameLimit)
        #expect(clean.allSatisfy { $0 == "é" })
    }
}

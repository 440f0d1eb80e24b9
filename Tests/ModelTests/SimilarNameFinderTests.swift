import Testing

@testable import Model

@Suite struct NearNamesTests {
    private static let tools = [
        "get_view_tree", "launch_context", "network_log", "screenshot", "scroll", "tap_element", "tap_point",
        "type_text",
    ]

    @Test(arguments: [
        ("screnshot", ["screenshot"]), ("takeScreenshot", ["screenshot"]), ("take_screen_shot", ["screenshot"]),
        ("tap", ["tap_point", "tap_element"]), ("Tap-Element", ["tap_element", "tap_point"]),
        ("viewTree", ["get_view_tree"]), ("fly", []), ("", []), ("__", []),
    ])
    func `a wrong name yields the existing names that resemble it`(word: String, near: [String]) {
        #expect(SimilarNameFinder.of(word, among: Self.tools) == near)
    }

    @Test func `a thousand long names are compared within 10 s`() {
        let names = (0..<1_000).map { String(repeating: "a", count: 100_000 / ($0 + 1)) + "\($0)" }

        let wanted = String(repeating: "ab", count: 50_000)

        let took = ContinuousClock().measure { _ = SimilarNameFinder.of(wanted, among: names) }

        #expect(took < .seconds(10))
    }
}

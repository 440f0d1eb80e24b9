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
    func `a wrong name is near to those that it may stand for`(word: String, near: [String]) {
        #expect(NearNames.of(word, among: Self.tools) == near)
    }

    @Test func `names of any length and number are compared at once`() {
        let names = (0..<1_000).map { String(repeating: "a", count: 100_000 / ($0 + 1)) + "\($0)" }

        let took = ContinuousClock().measure { _ = NearNames.of(String(repeating: "ab", count: 50_000), among: names) }

        #expect(took < .seconds(10))
    }
}

import Testing

@testable import patchbay

@Suite struct TableTests {
    @Test(arguments: [
        ("abc", 3), ("é", 1), ("e\u{301}", 1), ("漢字", 4), ("한국", 4), ("ｶﾅ", 2), ("Ａ", 2), ("👩‍👩‍👧", 2), ("🇩🇪", 2), ("☎️", 2),
        ("☎", 1), ("\u{1100}\u{1161}", 2), ("", 0), ("…", 1),
    ])
    func `the width of a text is its width in a terminal`(text: String, columns: Int) {
        #expect(text.columns == columns)
    }

    @Test func `columns are aligned in every script`() {
        let table = Table(
            of: [["漢字店", "online"], ["cafe\u{301}", "gone"]],
            [.init("APP") { $0[0] }, .init("STATE") { $0[1] }]
        )

        #expect(
            table.text(width: nil, isColoured: false) == """
                APP     STATE
                漢字店  online
                cafe\u{301}    gone
                """
        )
    }

    @Test func `a narrow terminal truncates only the flexible column`() {
        let table = Table(
            of: [["shop-test-iphone", "com.example.shop.debug", "online"]],
            [.init("ID") { $0[0] }, .init("APP", .flexible) { $0[1] }, .init("STATE") { $0[2] }]
        )

        let lines = table.text(width: 40, isColoured: false).split(separator: "\n").map(String.init)

        #expect(lines[1] == "shop-test-iphone  com.example.s…  online")
        #expect(lines.allSatisfy { $0.columns <= 40 })
    }

    @Test(arguments: [60, 80, 200]) func `at every width no row is wider than the terminal, and the names are whole`(
        width: Int
    ) {
        let id = "shop-test-iphone-of-anna-in-the-lab"
        let table = Table(
            of: [[id, "127.0.0.1:43211", "com.example.shop", "waiting", "128", "99.9 MB", "the phone is away"]],
            [
                .init("ID") { $0[0] }, .init("LOCAL") { $0[1] }, .init("TARGET", .flexible) { $0[2] },
                .init("STATE") { $0[3] }, .init("OPEN", .optional) { $0[4] }, .init("UP", .optional) { $0[5] },
                .init("REASON", .flexible) { $0[6] },
            ]
        )
        let lines = table.text(width: width, isColoured: false).split(separator: "\n")

        #expect(lines.allSatisfy { $0.count <= max(width, 61) }, "\(lines)")
        #expect(lines[1].contains(id) && lines[1].contains("127.0.0.1:43211") && lines[1].contains("waiting"))
        #expect(lines[0].contains("OPEN") == (width > 80) && lines[0].contains("REASON") == (width >= 80))
    }

    @Test func `output to a pipe is not truncated and has no trailing spaces`() {
        let long = String(repeating: "x", count: 300)
        let table = Table(
            of: [[long, ""]],
            [.init("APP", .flexible) { $0[0] }, .init("WHY") { $0[1] }]
        )

        #expect(table.text(width: nil, isColoured: false).hasSuffix("\n" + long))
    }

    @Test func `a wrapping column shows the whole text, and breaks words only if nothing else fits`() {
        let table = Table(
            of: [
                ["a", "endpoint.call, registry.read", "user 1000, /tmp/agent"],
                ["b", "", ""],
            ],
            [.init("ID") { $0[0] }, .init("SCOPES", .wraps) { $0[1] }, .init("USER", .wraps) { $0[2] }]
        )

        let wide = table.text(width: 40, isColoured: false).split(separator: "\n").map(String.init)
        let narrow = table.text(width: 24, isColoured: false).split(separator: "\n").map(String.init)

        #expect(
            wide == [
                "ID  SCOPES             USER",
                "a   endpoint.call,     user 1000,",
                "    registry.read      /tmp/agent",
                "b",
            ]
        )
        #expect(narrow.allSatisfy { $0.columns <= 24 }, "\(narrow)")
        #expect(narrow.joined().filter { $0 != " " }.contains("…") == false)
    }

    @Test func `a wide character is never split`() {
        #expect("漢字漢字".cut(to: 4) == "漢…")
        #expect("漢字漢字".cut(to: 8) == "漢字漢字")
        #expect("abc".cut(to: 0) == "")
    }

    @Test func `colors do not change the alignment`() {
        let table = Table(
            of: [["online", "y"]],
            [.init("STATE", style: { _ in .green }) { $0[0] }, .init("X") { $0[1] }]
        )

        #expect(table.text(width: nil, isColoured: true).hasSuffix("\u{1B}[32monline\u{1B}[0m  y"))
    }

    @Test(arguments: [
        (ColorChoice.auto, [:], true, true), (.auto, [:], false, false), (.auto, ["NO_COLOR": "1"], true, false),
        (.auto, ["FORCE_COLOR": "1"], false, true), (.auto, ["NO_COLOR": "1", "FORCE_COLOR": "1"], true, false),
        (.auto, ["NO_COLOR": ""], true, true), (.auto, ["TERM": "dumb"], true, false),
        (.always, ["NO_COLOR": "1"], false, true), (.never, ["FORCE_COLOR": "1"], true, false),
    ])
    func `the precedence of color is option, NO_COLOR, FORCE_COLOR, terminal`(
        choice: ColorChoice,
        environment: [String: String],
        isTerminal: Bool,
        isOn: Bool
    ) { #expect(choice.isOn(environment: environment, isTerminal: isTerminal) == isOn) }
}

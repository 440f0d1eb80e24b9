import Model
import Testing

@Suite struct SecretRedactorTests {
    private static let redactor = SecretRedactor(known: [Array("s3cret-of-the-app".utf8)])

    @Test(arguments: [
        ("password: hunter2, then more", "password: [removed], then more"),
        (#"{"apiKey":"abc def","user":"anna"}"#, #"{"apiKey":"[removed]","user":"anna"}"#),
        (#"{\"session_token\": \"abc\", \"n\": 1}"#, #"{\"session_token\": \"[removed]"#),
        ("Authorization: Bearer abc.def-ghi\nHost: x", "Authorization: [removed]\nHost: x"),
        ("curl -H 'X-Api-Key: 12345'", "curl -H 'X-Api-Key: [removed]'"),
        ("Cookie: a=1; b=2\nNext", "Cookie: [removed]\nNext"),
        ("see http://10.0.0.1/?token=abc&x=1", "see http://10.0.0.1/?token=[removed]&x=1"),
        ("get https://anna:hunter2@10.0.0.1/x now", "get https://anna:[removed]@10.0.0.1/x now"),
        ("it is s3cret-of-the-app.", "it is [removed]."),
        ("use pbg_0a1b2c3d_0123456789012345678901_abcdef now", "use [removed] now"),
        ("id 3f1c9e0b7a5d4c2e8f6a1b0c9d8e7f60 end", "id [removed] end"),
        (
            "jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N end",
            "jwt [removed].[removed].[removed] end"
        ),
        ("on http://127.0.0.1:41321/EMYU73JbR-A=/ws now", "on http://127.0.0.1:41321/[removed]/ws now"),
        ("aws wJalrXUtnFEMI/K7MDENG/bPxRfiCY9aZ8qT2LkP0w end", "aws [removed] end"),
    ])
    func `secrets are removed`(text: String, expected: String) {
        let redacted = Self.redactor.text(text)

        #expect(redacted == expected || redacted.hasPrefix(expected), "\(redacted)")
        #expect(!redacted.contains("hunter2") && !redacted.contains("s3cret-of-the-app"))
    }

    @Test(arguments: [
        "tapped checkout.button at 10,20", "productCardAddToCartButton12 is visible",
        "550e8400-e29b-41d4-a716-446655440000", "phone 00008110-001A2B3C4D5E6F70",
        "/var/mobile/Containers/Data/Application", "http://127.0.0.1:8081/index.bundle?platform=ios&dev=1",
        "com.example.shop.checkout.PaymentViewController2", #"{"hasToken":true,"password":null}"#, "", "näme 😀",
    ])
    func `other texts stay`(text: String) { #expect(Self.redactor.text(text) == text) }

    @Test func `a long text is cut between characters, and a secret across the limit is removed`() {
        let start = String(repeating: "ä", count: SecretRedactor.limit / 2 - 4)
        let cut = Self.redactor.text("\(start)s3cret-of-the-app and more")

        #expect(cut.hasPrefix(start) && cut.utf8.count <= SecretRedactor.limit + 32)
        #expect(!cut.contains("s3cret") && !cut.contains("\u{FFFD}"))
        let emoji = Self.redactor.text(String(repeating: "😀", count: 4_000))
        #expect(emoji.utf8.count <= SecretRedactor.limit + 8 && !emoji.contains("\u{FFFD}"))
    }

    @Test func `the excerpt of a text is bounded, and shows the same`() {
        let long = String(repeating: "ä s3cret-of-the-app ", count: 10_000)
        let excerpt = SecretRedactor.excerpt(of: long)

        #expect(excerpt.utf8.count < 8_192 && Self.redactor.text(excerpt) == Self.redactor.text(long))
        #expect(SecretRedactor.excerpt(of: "short") == "short")
        #expect(SecretRedactor.isSmall(["x": [1, 2, ["y": "z"]]]) && !SecretRedactor.isSmall(["x": .string(long)]))
        #expect(!SecretRedactor.isSmall(["x": .array(Array(repeating: .null, count: 100))]))
    }

    @Test func `a secret is found by a name in capitals, and by the option before it`() {
        let kept = Self.redactor.arguments([
            "header": ["Name": "X-Api-Key", "Value": "hunter2"], "argv": ["--password", "hunter2", "-v", "x"],
            "Pass": "hunter2",
        ])

        #expect(!JSON.object(kept).text.contains("hunter2"))
        #expect(kept["argv"] == ["--password", .string(SecretRedactor.mark), "-v", "x"])
    }

    @Test func `arguments lose the values of names of secrets, and of members that are named beside`() {
        let arguments: JSONObject = [
            "element_id": "login.user", "password": "hunter2", "x": 10, "headers": ["Set-Cookie": ["a", "b"]],
            "state": ["key": "authToken", "value": "abc"], "isSecret": true, "note": "my key is s3cret-of-the-app",
        ]

        let kept = Self.redactor.arguments(arguments)

        #expect(
            kept == [
                "element_id": "login.user", "password": "[removed]", "x": 10, "headers": ["Set-Cookie": "[removed]"],
                "state": ["key": "authToken", "value": "[removed]"], "isSecret": true, "note": "my key is [removed]",
            ]
        )
    }

    @Test func `arguments are bounded in length and depth`() {
        var deep: JSON = "end"
        for _ in 0..<100 { deep = ["in": deep] }
        let many = JSON.array((0..<100_000).map { .number(JSONNumber($0)) })
        let long = JSON.string(String(repeating: "x", count: 1_000_000))

        let kept = Self.redactor.arguments(["deep": deep, "many": many, "long": long, "last": 1])

        #expect(JSON.object(kept).bytes.count < 2 * SecretRedactor.limit)
    }
}

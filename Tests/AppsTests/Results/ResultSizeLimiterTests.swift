import FoundationEssentials
@testable import Apps
import Model
import TestSupport
import Testing

@Suite(.scratchFolder) struct ResultSizeLimiterTests {
    private let scratch = ScratchFolder.current

    private func limited(
        _ result: JSONObject,
        maxPixels: Int = 1_568,
        _ body: (JSONObject, ArtifactStore) async throws -> Void
    ) async throws {
        let store = ArtifactFixture.store(in: scratch)
        let limiter = ResultSizeLimiter(images: ImageResizer(), artifacts: store)
        try await body(
            await limiter.limitSize(of: result, maxPixels: maxPixels, for: ArtifactFixture.agent("a")),
            store
        )
    }

    private func content(_ result: JSONObject) -> [JSON] { result["content"]?.array ?? [] }

    private func fetch(_ block: JSON?, _ store: ArtifactStore) async -> Artifact? {
        guard let uri = block?["uri"]?.string, uri.hasPrefix(ArtifactStore.scheme) else { return nil }
        return await store.artifact(String(uri.dropFirst(ArtifactStore.scheme.count)), for: ArtifactFixture.agent("a"))
    }

    @Test func `a small result is unchanged`() async throws {
        let result: JSONObject = [
            "content": [
                ["type": "image", "data": .string(Screenshot.small), "mimeType": "image/png"], ["type": "x", "y": 1],
            ],
            "structuredContent": ["a": .string(Screenshot.small)], "isError": false, "other": [1, 2],
        ]

        try await limited(result) { limited, _ in #expect(limited == result) }
    }

    @Test func `a large screenshot is scaled down, and its copies become the URI of the original`() async throws {
        let result: JSONObject = [
            "content": [
                ["type": "text", "text": .string(#"{"image":"\#(Screenshot.large)"}"#)],
                [
                    "type": "image", "data": .string(Screenshot.large), "mimeType": "image/x-whatever",
                    "annotations": ["priority": 1],
                ],
            ], "structuredContent": ["image": .string(Screenshot.large), "width": 2_000],
        ]

        try await limited(result, maxPixels: 500) { limited, store in
            #expect(content(limited).count == 3)
            let image = content(limited)[1]
            let bytes = try #require(image["data"]?.string.flatMap { Data(base64Encoded: $0) })
            #expect(image["mimeType"]?.string == ImageFormat(of: bytes)?.mimeType)
            #expect(image["annotations"] == ["priority": 1])
            // Taps need coordinates in the screen's own pixels.
            #expect(content(limited).last == ["type": "text", "text": "[scaled from 2000x2000 to 500x500 pixels]"])
            #expect(bytes.count < Screenshot.large.utf8.count / 2)
            let uri = try #require(limited["structuredContent"]?["image"]?.string)
            #expect(limited["structuredContent"]?["width"] == 2_000)
            #expect(content(limited).first?["text"] == .string(#"{"image":"\#(uri)"}"#))
            let original = await fetch(["uri": .string(uri)], store)
            #expect(original?.bytes == Data(base64Encoded: Screenshot.large).map(Array.init))
            #expect(original?.mimeType == "image/png")
        }
    }

    @Test func `a limit of 0 pixels links the original`() async throws {
        let result: JSONObject = [
            "content": [["type": "image", "data": .string(Screenshot.small), "mimeType": "image/png"]],
            "structuredContent": ["image": .string(Screenshot.small)],
        ]

        try await limited(result, maxPixels: 0) { limited, store in
            let link = content(limited).first
            #expect(link?["type"] == "resource_link")
            #expect(link?["mimeType"] == "image/png")
            #expect(await fetch(link, store)?.bytes == Data(base64Encoded: Screenshot.small).map(Array.init))
            #expect(limited["structuredContent"]?["image"] == link?["uri"])
        }
    }

    @Test func `an image re-encoded in its own size has no scale note`() async throws {
        let result: JSONObject = [
            "content": [["type": "image", "data": .string(Screenshot.large), "mimeType": "image/png"]]
        ]

        try await limited(result, maxPixels: 2_000) { limited, _ in
            #expect(content(limited).count == 1)
            #expect(content(limited).first?["type"] == "image")
            #expect(content(limited).first?["data"] != .string(Screenshot.large))
        }
    }

    @Test func `an image gets its actual media type`() async throws {
        let result: JSONObject = [
            "content": [["type": "image", "data": .string(Screenshot.small), "mimeType": "image/jpg", "x": 1]]
        ]

        try await limited(result) { limited, _ in
            #expect(
                content(limited) == [
                    ["type": "image", "data": .string(Screenshot.small), "mimeType": "image/png", "x": 1]
                ]
            )
        }
    }

    @Test func `an image in any form of base64 is shown in standard base64 with its own type`() async throws {
        let small = Screenshot.small
        let lines = stride(from: 0, to: small.count, by: 76).map { small.dropFirst($0).prefix(76) + "\r\n" }.joined()
        let forms = [
            lines, "data:image/jpeg;base64,\(small)", String(small.prefix { $0 != "=" }),
            small.replacing("+", with: "-").replacing("/", with: "_"), "data:image/png;base64,\(lines)",
        ]

        for form in forms {
            let result: JSONObject = ["content": [["type": "image", "data": .string(form), "mimeType": "image/jpeg"]]]
            try await limited(result) { limited, _ in
                #expect(
                    content(limited) == [["type": "image", "data": .string(small), "mimeType": "image/png"]],
                    "\(form.prefix(40))"
                )
            }
            try await limited(result, maxPixels: 0) { limited, store in
                let bytes = try #require(Data(base64Encoded: small))
                #expect(
                    await fetch(content(limited).first, store) == Artifact(bytes: Array(bytes), mimeType: "image/png")
                )
            }
        }
    }

    @Test(arguments: [
        ("<svg/>", "image/svg+xml"), ("PHN2Zy8+", "image/svg+xml"), ("data:image/svg+xml,%3Csvg/%3E", "image/svg+xml"),
        ("AAAAGGZ0eXBoZWljAAAAAG1pZjFoZWlj", "image/heic"), ("AAAAGGZ0eXBhdmlmAAAAAG1pZjFtaWFm", "image/avif"),
        (Screenshot.webp(9_000, 1_600, bytes: 64), "image/webp"),
    ])
    func `an image that cannot be resized is a link with its true type`(data: String, type: String) async throws {
        for name in [type, "image/png", "image/jpeg"] {
            let result: JSONObject = ["content": [["type": "image", "data": .string(data), "mimeType": .string(name)]]]

            try await limited(result) { limited, store in
                let link = content(limited).first
                #expect(link?["type"] == "resource_link" && link?["mimeType"]?.string == type)
                #expect(await fetch(link, store)?.mimeType == type)
            }
        }
    }

    @Test func `sound and embedded resources get standard base64`() async throws {
        let result: JSONObject = [
            "content": [
                ["type": "audio", "data": "-_-_\nAA", "mimeType": "audio/wav"],
                ["type": "resource", "resource": ["uri": "app://a", "blob": "data:;base64,-_-_AA"]],
                ["type": "resource", "resource": ["uri": "app://b", "text": "-_-_AA"]],
                ["type": "audio", "data": "no base64!", "mimeType": "audio/wav"],
            ]
        ]

        try await limited(result) { limited, _ in
            #expect(content(limited)[0]["data"] == "+/+/AA==")
            #expect(content(limited)[1]["resource"] == ["uri": "app://a", "blob": "+/+/AA=="])
            #expect(content(limited)[2...] == (result["content"]?.array ?? [])[2...])
        }
    }

    @Test(arguments: [
        (Screenshot.bomb, "50000 x 50000", "image/png"), (Screenshot.cut, "damaged", "application/octet-stream"),
        ("aGFsbG8=", "neither PNG nor JPEG", "application/octet-stream"),
        ("no base64!", "not base64", "application/octet-stream"),
        ("", "neither PNG nor JPEG", "application/octet-stream"),
    ])
    func `an image that cannot be decoded becomes a link with the reason, whatever its size`(
        base64: String,
        reason: String,
        mimeType: String
    ) async throws {
        let result: JSONObject = [
            "content": [["type": "image", "data": .string(base64), "mimeType": "image/png"]],
            "structuredContent": ["size": 1],
        ]

        try await limited(result) { limited, store in
            let link = content(limited).first
            #expect(content(limited).count == 2 && link?["type"] == "resource_link")
            let description = try #require(link?["description"]?.string)
            #expect(description.contains(reason))
            // Some clients do not show the description of a link.
            #expect(content(limited).last == ["type": "text", "text": .string("[not shown: \(description)]")])
            #expect(link?["mimeType"]?.string == mimeType)
            let bytes = Data(base64Encoded: base64).map(Array.init) ?? Array(base64.utf8)
            #expect(await fetch(link, store)?.bytes == bytes)
            #expect(limited["structuredContent"] == ["size": 1])
        }
    }

    @Test func `an undecoded GIF or WebP image stays if it is small and becomes a link if it is large`()
        async throws
    {
        let heavy = Screenshot.webp(900, 1_600, bytes: 1 << 20)
        let result: JSONObject = [
            "content": [
                ["type": "image", "data": .string(Screenshot.webp(900, 1_600, bytes: 64)), "mimeType": "image/webp"],
                ["type": "image", "data": .string(Screenshot.gif), "mimeType": "image/gif"],
                ["type": "image", "data": .string(heavy), "mimeType": "image/webp"],
                ["type": "image", "data": .string(Screenshot.webp(9_000, 1_600, bytes: 64)), "mimeType": "image/webp"],
                ["type": "image", "data": "UklGRiQAAABXRUJQVlA4", "mimeType": "image/webp"],
                ["type": "image", "data": "R0lGODlhAQABAA==", "mimeType": "image/gif"],
                ["type": "image", "data": "PHN2Zy8+", "mimeType": "image/svg+xml"],
            ]
        ]

        try await limited(result) { limited, store in
            #expect(Array(content(limited).prefix(2)) == Array(content(result).prefix(2)))
            let links = content(limited).filter { $0["type"] == "resource_link" }
            #expect(links.count == 5 && !content(limited).dropFirst(2).contains { $0["type"] == "image" })
            #expect(links.last?["mimeType"] == "image/svg+xml")
            let kept = try #require(Data(base64Encoded: heavy))
            #expect(await fetch(links.first, store) == Artifact(bytes: Array(kept), mimeType: "image/webp"))
        }
    }

    @Test func `a text over 1 MiB becomes its beginning and a link`() async throws {
        let text = String(repeating: "line of a log\n", count: 100_000)
        let result: JSONObject = ["content": [["type": "text", "text": .string(text)]], "isError": false]

        try await limited(result) { limited, store in
            let blocks = content(limited)
            #expect(blocks.count == 2)
            #expect(blocks.first?["text"]?.string?.hasPrefix("line of a log\n") == true)
            #expect(blocks.first?["text"]?.string?.utf8.count ?? .max < 3_000)
            #expect(await fetch(blocks.last, store) == Artifact(bytes: Array(text.utf8), mimeType: "text/plain"))
            #expect(limited["isError"] == false)
        }
    }

    /// The MCP Python SDK 2.3 refuses a server-sent event of more than 1 MiB.
    @Test(arguments: ["x", "\""]) func `a text and its copy in the structured content fit 1 MiB together`(
        letter: String
    ) async throws {
        let text = String(repeating: letter, count: 700_000)
        let result: JSONObject = [
            "content": [["type": "text", "text": .string(text)]], "structuredContent": ["result": .string(text)],
        ]

        try await limited(result) { limited, store in
            #expect(JSON.object(limited).bytes.count < 1 << 20)
            let copy = await fetch(content(limited)[1], store)
            #expect(copy?.bytes == Array(text.utf8))
            // An escaped text is twice as long.
            #expect((limited["structuredContent"] != nil) == (letter == "x"))
        }
    }

    @Test func `large binary and structured content become links`() async throws {
        let film = [UInt8](repeating: 3, count: 2 << 20)
        let tree = JSON.array((0..<200_000).map { .number(JSONNumber($0)) })
        let result: JSONObject = [
            "content": [
                [
                    "type": "resource",
                    "resource": [
                        "uri": "app://film", "mimeType": "video/mp4", "blob": .string(Data(film).base64EncodedString()),
                    ],
                ]
            ], "structuredContent": ["tree": tree],
        ]

        try await limited(result) { limited, store in
            #expect(limited["structuredContent"] == nil)
            #expect(await fetch(content(limited).first, store) == Artifact(bytes: film, mimeType: "video/mp4"))
            let structure = await fetch(content(limited).last, store)
            #expect(structure?.mimeType == "application/json")
            let bytes = try #require(structure?.bytes)
            let parsed = try JSON(parsing: bytes)
            #expect(parsed == ["tree": tree])
        }
    }

    @Test func `a result without content gets none`() async throws {
        let result: JSONObject = ["toolResult": .string(String(repeating: "x", count: 2 << 20))]

        try await limited(result) { limited, _ in #expect(limited == result) }
    }
}

/// Screenshots as apps send them: grayscale, in Base64.
private enum Screenshot {
    static let small = png(8)
    static let large = png(2_000)
    /// A header that declares an image of 10 GB.
    static let bomb = Data(
        signature + chunk("IHDR", bytes(50_000) + bytes(50_000) + [8, 2, 0, 0, 0]) + chunk("IDAT", [0x78, 0x01])
            + chunk("IEND", [])
    ).base64EncodedString()
    static let cut = Data((Data(base64Encoded: small) ?? Data()).prefix(100)).base64EncodedString()
    static let gif = "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"

    private static let signature: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]

    /// A WebP with this size in its header (RFC 9649, section 2.7) and no image data.
    static func webp(_ width: Int, _ height: Int, bytes count: Int) -> String {
        func number(_ value: Int, _ bytes: Int) -> [UInt8] { (0..<bytes).map { UInt8(value >> ($0 * 8) & 255) } }
        let frame = [0, 0, 0, 0] + number(width - 1, 3) + number(height - 1, 3)
        let chunks = Array("WEBPVP8X".utf8) + number(10, 4) + frame + [UInt8](repeating: 0, count: count)
        return Data(Array("RIFF".utf8) + number(chunks.count, 4) + chunks).base64EncodedString()
    }

    /// A square PNG with stored zlib blocks, which needs no encoder.
    private static func png(_ side: Int) -> String {
        let row = [UInt8](repeating: 0, count: 1) + (0..<side).map { UInt8($0 * 255 / side) }
        let raw = (0..<side).flatMap { _ in row }
        var stream: [UInt8] = [0x78, 0x01]
        for start in stride(from: 0, to: raw.count, by: 65_535) {
            let block = raw[start..<min(start + 65_535, raw.count)]
            let length = UInt16(block.count)
            stream.append(start + block.count == raw.count ? 1 : 0)
            stream += [UInt8(length & 255), UInt8(length >> 8), UInt8(~length & 255), UInt8(~length >> 8)]
            stream += block
        }
        var (a, b) = (UInt32(1), UInt32(0))
        for byte in raw { (a, b) = ((a + UInt32(byte)) % 65_521, (b + a + UInt32(byte)) % 65_521) }
        stream += bytes(b << 16 | a)
        let header = bytes(UInt32(side)) + bytes(UInt32(side)) + [8, 0, 0, 0, 0]
        let file =
            signature + chunk("IHDR", header) + chunk("IDAT", stream)
            + chunk("IEND", [])
        return Data(file).base64EncodedString()
    }

    private static func chunk(_ name: String, _ data: [UInt8]) -> [UInt8] {
        let body = Array(name.utf8) + data
        var sum = UInt32.max
        for byte in body {
            sum ^= UInt32(byte)
            for _ in 0..<8 { sum = sum >> 1 ^ (sum & 1 == 1 ? 0xEDB8_8320 : 0) }
        }
        return bytes(UInt32(data.count)) + body + bytes(~sum)
    }

    private static func bytes(_ number: UInt32) -> [UInt8] {
        [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: number >> UInt32($0)) }
    }
}

import FoundationEssentials
import TestSupport
import Testing

@testable import Model

/// The codes are read by an independent reader, zbar.
@Suite(.scratchFolder) struct QRCodeTests {
    private let scratch = ScratchFolder.current
    static let texts = [
        "PATCHBAY:1:127.0.0.1:7282::pbi_0123abcd_0123456789ABCDEFGHabcd_0a1B2c",
        "PATCHBAY:1:192.168.100.200:7282:\(String(repeating: "A7", count: 26)):pbi_0123abcd_0123456789ABCDEFGHabcd_0a1B2c",
        "a",
    ]

    @Test(.needs(.zbar), arguments: texts, [true, false])
    func `a reader decodes the half blocks exactly`(text: String, isColoured: Bool) async throws {
        let lines = try QRCode(text).halfBlocks(isColoured: isColoured)

        // A terminal's cell is twice as high as wide, so a half block is a square of four pixels here.
        let file = "\(scratch.path)/code.pgm"
        try Self.picture(of: lines, isColoured: isColoured, scale: 4).write(to: URL(filePath: file))
        #expect(try await Self.read(file, scratch) == text)
    }

    @Test(.needs(.zbar), arguments: texts) func `a reader decodes the SVG image exactly`(text: String) async throws {
        let svg = try QRCode(text).svg()

        try Data(svg.utf8).write(to: URL(filePath: "\(scratch.path)/code.svg"))
        let picture = "\(scratch.path)/code.png"
        try await Program.run("rsvg-convert", ["-w", "300", "-o", picture, "\(scratch.path)/code.svg"], in: scratch)
        #expect(try await Self.read(picture, scratch) == text)
    }

    @Test func `the code of a local pairing string fits a terminal of 24 lines`() throws {
        #expect(try QRCode(Self.texts[0]).halfBlocks(isColoured: true).count <= 21)
    }

    @Test func `the border is light on all four sides`() throws {
        let code = try QRCode("a")
        let edge = Array(0..<QRCode.border) + Array((code.fullSize - QRCode.border)..<code.fullSize)

        for one in edge {
            for other in 0..<code.fullSize {
                #expect(!code.isDark(one, other))
                #expect(!code.isDark(other, one))
            }
        }
        #expect(code.isDark(QRCode.border, QRCode.border))
    }

    @Test func `the rows are the modules without the border`() throws {
        let code = try QRCode("PATCHBAY")
        #expect(code.rows.count == code.size && code.rows.allSatisfy { $0.count == code.size })
        // The finder pattern in the upper left corner (ISO/IEC 18004, section 6.3.3).
        #expect(
            code.rows.first?.hasPrefix("11111110") == true && code.rows.dropFirst().first?.hasPrefix("1000001") == true
        )
    }

    @Test func `a text that does not fit is an error that does not repeat the text`() {
        #expect(throws: QRError.empty) { _ = try QRCode("") }
        #expect(throws: QRError.tooLong(bytes: 2_954)) { try QRCode(String(repeating: "a", count: 2_954)) }
        #expect(throws: Never.self) { try QRCode(String(repeating: "a", count: 2_953)) }
    }

    private static func read(_ file: String, _ scratch: ScratchFolder) async throws -> String {
        try await Program.run("zbarimg", ["--quiet", "--raw", file], in: scratch).joined(separator: "\n")
    }

    /// Returns the lines as an image, as a terminal shows them. With colours, blocks are dark; otherwise blocks are
    /// light on a dark background.
    private static func picture(of lines: [String], isColoured: Bool, scale: Int) -> Data {
        var rows: [[Bool]] = []
        for line in lines {
            let cells = line.split(separator: "m").last?.prefix { $0 != "\u{1B}" }
            let shown = isColoured ? Array(cells ?? "") : Array(line)
            rows.append(shown.map { $0 == "█" || $0 == "▀" })
            rows.append(shown.map { $0 == "█" || $0 == "▄" })
        }
        let (ink, ground) = isColoured ? (UInt8(0), UInt8(255)) : (255, 0)
        let width = (rows.first?.count ?? 0) * scale
        var pixels = Data("P5\n\(width) \(rows.count * scale)\n255\n".utf8)
        for row in rows {
            let line = row.flatMap { [UInt8](repeating: $0 ? ink : ground, count: scale) }
            for _ in 0..<scale { pixels += line }
        }
        return pixels
    }
}

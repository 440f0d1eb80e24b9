import FoundationEssentials
import Model
import Testing

@Suite struct Base64DecoderTests {
    private static let bytes: [UInt8] = [0xFB, 0xFF, 0xBF, 0x00]

    @Test(arguments: [
        "+/+/AA==", "+/+/AA", "+/+/AA=", "-_-_AA==", "-_-_AA", "+/\r\n+/\r\nAA==\r\n", " +/+/ AA = =",
        "data:image/png;base64,+/+/AA==",
        "DATA:;BASE64,-_-_AA", "data:image/png;base64,%2B%2f+/AA%3D%3D", "\ndata:image/png;name=x;base64,\n+/+/\nAA==",
        "data:application/octet-stream,%FB%FF%BF%00",
    ])
    func `every usual form of base64 is read`(text: String) {
        let decoded = Base64Decoder.decode(text)

        #expect(decoded.map { Array($0.data) } == Self.bytes)
        #expect(decoded?.isStandard == (text == "+/+/AA=="))
    }

    @Test(arguments: [
        "A", "AAAAA", "AA=A", "AA==AAAA", "AA===", "A===", "é", "AA*A", "data:image/png;base64",
        "data:image/png,%F",
        "data:image/png;base64,%4", "data:image/png;base64,AA*A", "\u{0}AAA",
    ])
    func `other text is no base64`(text: String) { #expect(Base64Decoder.decode(text) == nil) }

    @Test(
        arguments: [
            ("\u{89}PNG", nil), ("GIF89a", .gif), ("RIFF\u{0}\u{0}\u{0}\u{0}WEBPVP8 ", .webp),
            ("RIFF\u{0}\u{0}\u{0}\u{0}WAVE", nil),
            ("\u{0}\u{0}\u{0}\u{18}ftypheic\u{0}\u{0}\u{0}\u{0}mif1heic", .heic),
            ("\u{0}\u{0}\u{0}\u{1C}ftypmif1\u{0}\u{0}\u{0}\u{0}mif1avifmiaf", .avif),
            ("\u{0}\u{0}\u{0}\u{18}ftypisom\u{0}\u{0}\u{0}\u{0}isommp42", nil), ("ftypheic", nil), ("<svg/>", .svg),
            ("\u{FEFF}<?xml version='1.0'?>\n<!-- <svg> -->\n<!DOCTYPE svg>\n<svg width='1'></svg>", .svg),
            ("<html><svg></svg></html>", nil), ("<svgx/>", nil), ("<!-- <svg>", nil), ("", nil),
        ] as [(String, ImageType?)]
    )
    func `the type of an image is known by its first bytes`(text: String, type: ImageType?) {
        #expect(ImageType(of: Array(text.utf8)) == type)
    }
}

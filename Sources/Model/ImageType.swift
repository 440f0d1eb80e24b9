/// The media type of an image, by its first bytes.
package enum ImageType: String, Hashable, Sendable {
    case png = "image/png"
    case jpeg = "image/jpeg"
    case gif = "image/gif"
    case webp = "image/webp"
    case heic = "image/heic"
    case avif = "image/avif"
    case svg = "image/svg+xml"

    /// The maximum length of what precedes the element of an SVG file, in bytes.
    private static let prologLimit = 4_096
    /// The brands of HEIF files (ISO/IEC 23008-12, annex B; AV1 Image File Format, section 6).
    private static let brands: [String: ImageType] = [
        "heic": .heic, "heix": .heic, "heim": .heic, "heis": .heic, "hevc": .heic, "mif1": .heic, "msf1": .heic,
        "avif": .avif, "avis": .avif,
    ]

    /// Detects the type; nil for other data.
    package init?(of bytes: some RandomAccessCollection<UInt8>) {
        let head = Array(bytes.prefix(12))
        if head.starts(with: [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]) {
            self = .png
        } else if head.starts(with: [0xFF, 0xD8, 0xFF]) {
            self = .jpeg
        } else if head.starts(with: "GIF8".utf8) {
            self = .gif
        } else if head.starts(with: "RIFF".utf8), head.dropFirst(8).elementsEqual("WEBP".utf8) {
            self = .webp
        } else if head.dropFirst(4).starts(with: "ftyp".utf8) {
            // ISO 14496-12, section 4.3: the major brand, a version, and compatible brands up to the size of the box.
            let size = head.prefix(4).reduce(0) { $0 << 8 | Int($1) }
            let box = Array(bytes.prefix(min(size, 128)))
            let compatible = stride(from: 16, to: box.count - 3, by: 4)
            let names = ([8] + compatible).filter { $0 + 4 <= box.count }.map {
                String(decoding: box[$0..<$0 + 4], as: UTF8.self)
            }
            let types = names.compactMap { Self.brands[$0] }
            guard let first = types.first else { return nil }
            self = types.contains(.avif) ? .avif : first
        } else if Self.isSVG(bytes) {
            self = .svg
        } else {
            return nil
        }
    }

    /// Returns whether the root element is `svg`. A declaration, comments and a document type may precede it.
    private static func isSVG(_ bytes: some RandomAccessCollection<UInt8>) -> Bool {
        var text = String(decoding: bytes.prefix(prologLimit), as: UTF8.self)[...]
        if text.first == "\u{FEFF}" { text.removeFirst() }
        while true {
            text = text.drop(while: \.isWhitespace)
            let ends = ["<?": "?>", "<!--": "-->", "<!": ">"]
            guard let start = ["<?", "<!--", "<!"].first(where: text.hasPrefix), let end = ends[start] else { break }
            guard let range = text.firstRange(of: end) else { return false }
            text = text[range.upperBound...]
        }
        guard text.hasPrefix("<svg"), let next = text.dropFirst(4).first else { return false }
        return next.isWhitespace || next == ">" || next == "/"
    }
}

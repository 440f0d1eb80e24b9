import CDashboard
import CZlib
import Crypto

/// The broker's web page: files that are part of the program. They are public and contain no data.
struct DashboardPage: Sendable {
    /// A file of the page, as it is sent.
    struct File: Sendable {
        let name: String
        let mediaType: String
        let bytes: [UInt8]
        /// The bytes in the content coding `gzip` (RFC 9110, section 8.4.1.3).
        let compressed: [UInt8]
        /// The entity tag (RFC 9110, section 8.8.3), with its quotes. It is a weak one, because both forms have it.
        let entityTag: String

        init(name: String, bytes: [UInt8]) {
            self.name = name
            self.bytes = bytes
            compressed = Self.compressed(bytes)
            mediaType = MediaType.of(name)
            entityTag = "W/\"\(SHA256.hash(data: bytes).hexadecimal(digits: 32))\""
        }

        /// Returns the bytes in the content coding gzip: a header, the deflated data, their CRC-32 and their size (RFC 1952).
        private static func compressed(_ bytes: [UInt8]) -> [UInt8] {
            var count = compressBound(uLong(bytes.count))
            let zlib = [UInt8](unsafeUninitializedCapacity: Int(count)) { space, initialized in
                let result = compress2(space.baseAddress, &count, bytes, uLong(bytes.count), Z_BEST_COMPRESSION)
                precondition(result == Z_OK, "the space is large enough for any bytes")
                initialized = Int(count)
            }
            // The form of zlib has 2 bytes before and 4 bytes behind the deflated data (RFC 1950).
            let checksum = crc32(0, bytes, uInt(bytes.count))
            return [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 2, 255] + zlib.dropFirst(2).dropLast(4)
                + littleEndian(UInt32(checksum)) + littleEndian(UInt32(bytes.count))
        }

        private static func littleEndian(_ number: UInt32) -> [UInt8] {
            (0..<4).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
        }
    }

    /// The number of bytes that a browser loads for the whole dashboard.
    var compressedSize: Int {
        files.values.filter { !$0.name.hasPrefix("consent.") }
            .reduce(index.compressed.count) { $0 + $1.compressed.count }
    }

    /// The policy of the browser for the page: nothing from elsewhere, no inline script, and no frame around the page.
    static let contentSecurityPolicy =
        "default-src 'self'; img-src 'self' blob: data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

    /// The page of this program. Its hash is computed once.
    static let shared = DashboardPage(embedded)

    /// The SHA-256 of all files in 16 digits. The paths of the files contain it, so caches may keep them for ever.
    let hash: String
    /// The document at `/`, which names the hash.
    let index: File
    /// The document of OAuth's consent, at `/oauth/authorize`.
    let consent: File
    /// The other files by name.
    private let files: [String: File]

    /// The document's name among the files.
    private static let indexName = "index.html"
    private static let consentName = "consent.html"
    /// The text in the document that stands for the folder of the other files.
    private static let basePlaceholder = "{{base}}"

    /// The files of the program, by name.
    static var embedded: [String: [UInt8]] {
        var count = 0
        let first = CDashboard_files(&count)
        let files = UnsafeBufferPointer(start: first, count: count).map { file in
            (String(cString: file.name), Array(UnsafeBufferPointer(start: file.bytes, count: file.count)))
        }
        return Dictionary(files) { first, _ in first }
    }

    init(_ sources: [String: [UInt8]]) {
        let contents = Dictionary(uniqueKeysWithValues: sources.map { ($0, Self.isCode($0) ? Self.shortened($1) : $1) })
        var hasher = SHA256()
        for (name, bytes) in contents.sorted(by: { $0.key < $1.key }) {
            hasher.update(data: Array("\(name)\0\(bytes.count)\0".utf8))
            hasher.update(data: bytes)
        }
        hash = hasher.finalize().hexadecimal(digits: 16)
        let base = "dashboard/\(hash)/"
        func document(_ name: String, base: String) -> File {
            let text = String(decoding: contents[name] ?? [], as: UTF8.self)
            return File(name: name, bytes: Array(text.replacing(Self.basePlaceholder, with: base).utf8))
        }
        index = document(Self.indexName, base: base)
        consent = document(Self.consentName, base: "../\(base)")
        files = Dictionary(
            contents.filter { ![Self.indexName, Self.consentName].contains($0.key) }.map {
                ($0.key, File(name: $0.key, bytes: $0.value))
            }
        ) { first, _ in first }
    }

    private static func isCode(_ name: String) -> Bool { name.hasSuffix(".js") || name.hasSuffix(".css") }

    /// Returns a script or a stylesheet without its indentation and its lines of comments. These lines stay as empty ones,
    /// so that a browser names the lines of the sources. No text in the files spans lines, and a comment that begins a
    /// line ends one.
    static func shortened(_ code: [UInt8]) -> [UInt8] {
        let (space, newline) = (UInt8(ascii: " "), UInt8(ascii: "\n"))
        var isInComment = false
        let lines = code.split(separator: newline, omittingEmptySubsequences: false).map { line -> ArraySlice<UInt8> in
            let rest = line.drop { $0 == space }
            isInComment = isInComment || rest.starts(with: "/*".utf8)
            if isInComment {
                isInComment = !rest.suffix(2).elementsEqual("*/".utf8)
                return []
            }
            return rest.starts(with: "//".utf8) ? [] : rest
        }
        return Array(lines.joined(separator: [newline]))
    }

    /// Returns the file at `/dashboard/{hash}/{name}`; nil for a hash of another build.
    func file(_ name: some StringProtocol, hash: some StringProtocol) -> File? {
        hash == self.hash ? files[String(name)] : nil
    }
}

/// The media types of the files (RFC 9239 for scripts).
private enum MediaType {
    static func of(_ name: String) -> String {
        switch name.split(separator: ".").last {
        case "html": "text/html; charset=utf-8"
        case "css": "text/css; charset=utf-8"
        case "js": "text/javascript; charset=utf-8"
        case "svg": "image/svg+xml"
        case "png": "image/png"
        default: "application/octet-stream"
        }
    }
}

extension SHA256Digest {
    /// Returns the first hexadecimal digits.
    fileprivate func hexadecimal(digits: Int) -> String {
        String(reduce(into: "") { $0 += ($1 < 16 ? "0" : "") + String($1, radix: 16) }.prefix(digits))
    }
}

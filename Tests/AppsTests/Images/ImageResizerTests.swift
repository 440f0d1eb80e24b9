import Testing

@testable import Apps

@Suite struct ImageResizerTests {
    private let limits = ImageLimits()

    private func resized(_ bytes: [UInt8], to edge: Int = ImageResizer.longEdge) throws -> ImageFile {
        try ImageFile(reading: bytes, within: limits).fitted(to: edge, within: limits)
    }

    private func png(_ bitmap: Bitmap) throws -> [UInt8] { try #require(PNG.file(of: bitmap, limit: 64 << 20)) }

    @Test func `a small image is returned unchanged, byte for byte`() async throws {
        let bytes = try png(SampleImages.screen(width: 400, height: 800))

        let (original, fitted, _) = try await ImageResizer().resize(base64: SampleImages.base64(bytes), to: 1_568)

        #expect(original.bytes == bytes)
        #expect(fitted == original)
        #expect((original.width, original.height) == (400, 800))
    }

    @Test func `a screenshot is scaled to the requested edge and keeps its proportions`() throws {
        let small = try resized(png(SampleImages.screen(width: 1_290, height: 2_796)))

        #expect((small.width, small.height) == (723, 1_568))
        #expect(small.bytes.count <= limits.result)
        let opened = try ImageFile(reading: small.bytes, within: limits)
        #expect((opened.width, opened.height, opened.format) == (723, 1_568, small.format))
    }

    @Test func `the smaller of the two formats is chosen`() throws {
        let flat = try resized(
            png(SampleImages.bitmap(width: 2_000, height: 2_000) { _, _ in (200, 100, 50, 255) }),
            to: 1_000
        )
        let photo = try resized(JPEG.file(of: SampleImages.noise(width: 1_200, height: 900), quality: 90), to: 300)

        #expect(flat.format == .png)
        #expect(photo.format == .jpeg)
    }

    @Test(arguments: [ImageFormat.png, .jpeg])
    func `a wanted format is produced, also for an image that already fits`(format: ImageFormat) throws {
        let screen = SampleImages.screen(width: 400, height: 800)
        let noise = SampleImages.noise(width: 1_200, height: 1_200)
        for bytes in [try png(screen), try JPEG.file(of: screen, quality: 90), try JPEG.file(of: noise, quality: 90)] {
            let file = try ImageFile(reading: bytes, within: limits).fitted(to: 1_568, as: format, within: limits)

            #expect(file.format == format && ImageFormat(of: file.bytes) == format)
            #expect(file.bytes.count <= limits.result)
            let isUnchanged = ImageFormat(of: bytes) == format && bytes.count <= limits.result
            #expect((file.bytes == bytes) == isUnchanged)
        }
    }

    @Test func `noise is also brought below the size limit`() throws {
        let bytes = try JPEG.file(of: SampleImages.noise(width: 2_400, height: 2_400), quality: 95)

        let small = try resized(bytes)

        #expect(small.bytes.count <= limits.result)
        #expect(small.longEdge <= 1_568)
    }

    @Test func `colours are preserved in both formats`() throws {
        let bitmap = SampleImages.bitmap(width: 2_000, height: 1_000) { _, _ in (30, 120, 240, 255) }
        for bytes in [try png(bitmap), try JPEG.file(of: bitmap, quality: 95)] {
            let small = try resized(bytes, to: 500)
            let (opened, _) = try PNG.bitmap(of: small.bytes)

            #expect((opened.width, opened.height) == (500, 250))
            let pixel = opened.pixels.prefix(4).map(Int.init)
            for (is_, was) in zip(pixel, [30, 120, 240, 255]) { #expect(abs(is_ - was) <= 2) }
        }
    }

    @Test func `transparent pixels become white, and invisible colours do not show`() throws {
        let halfTransparent = SampleImages.bitmap(width: 4, height: 4) { x, _ in
            x < 2 ? (0, 0, 255, 0) : (0, 0, 255, 255)
        }
        let clear = try halfTransparent.fitted(to: 4, isOpaque: false)
        let half = try SampleImages.bitmap(width: 2, height: 2) { _, _ in (0, 0, 0, 128) }.fitted(
            to: 1,
            isOpaque: false
        )

        #expect(Array(clear.pixels[0..<4]) == [255, 255, 255, 255])
        #expect(Array(clear.pixels[12..<16]) == [0, 0, 255, 255])
        #expect((126...128).contains(half.pixels[0]))
        #expect(half.pixels[3] == 255)
    }

    @Test func `a decompression bomb is rejected by its header alone`() {
        #expect(throws: ImageError.tooManyPixels(width: 30_000, height: 30_000)) {
            try ImageFile(reading: SampleImages.header(width: 30_000, height: 30_000), within: limits)
        }
        #expect(throws: ImageError.tooManyPixels(width: 100_000, height: 1)) {
            try ImageFile(reading: SampleImages.header(width: 100_000, height: 1), within: limits)
        }
    }

    @Test func `an image truncated at any point is an error`() throws {
        let bytes = try png(SampleImages.screen(width: 300, height: 300))
        for count in [9, 30, 45, bytes.count / 2] {
            #expect(throws: ImageError.self) { try resized(Array(bytes.prefix(count)), to: 100) }
        }
        #expect(throws: ImageError.self) { try resized([0xFF, 0xD8, 0xFF, 0xE0, 0, 0]) }
    }

    @Test func `random changes of bytes give an image or an error`() throws {
        let bitmap = SampleImages.screen(width: 50, height: 40)
        let files = [try png(bitmap), try JPEG.file(of: bitmap, quality: 75)]
        var state: UInt64 = 7
        func next(_ limit: Int) -> Int {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Int(state >> 33) % limit
        }
        var decodedCount = 0
        for round in 0..<600 {
            var bytes = files[round % 2]
            for _ in 0..<1 + next(8) { bytes[3 + next(bytes.count - 3)] = UInt8(next(256)) }
            do throws(ImageError) {
                let file = try ImageFile(reading: bytes, within: limits)
                decodedCount += try file.fitted(to: 20, within: limits).longEdge <= 20 ? 1 : 0
            } catch {}
        }
        #expect((1..<600).contains(decodedCount))
    }

    @Test(arguments: [200, 1_568]) func `half an image is an error, even if the whole image fits`(edge: Int) throws {
        let bitmap = SampleImages.screen(width: 800, height: 800)
        for bytes in [try JPEG.file(of: bitmap, quality: 80), try png(bitmap)] {
            #expect(throws: ImageError.self) { try resized(Array(bytes.prefix(bytes.count / 2)), to: edge) }
            #expect(try resized(bytes, to: edge).longEdge == min(edge, 800))
        }
    }

    @Test func `a JPEG with trailing data is accepted`() throws {
        let bytes = try JPEG.file(of: SampleImages.screen(width: 80, height: 80), quality: 80) + Array("trailer".utf8)

        #expect(try resized(bytes).bytes == bytes)
    }

    @Test(arguments: [
        ("UklGRiQAAABXRUJQVlA4", ImageError.unknownFormat), ("", .unknownFormat), ("not base64!", .notBase64),
    ])
    func `other formats and invalid base64 are rejected`(base64: String, error: ImageError) async {
        await #expect(throws: error) { try await ImageResizer().resize(base64: base64, to: 100) }
    }

    @Test func `data above the byte limit is not even decoded`() async {
        var limits = ImageLimits()
        limits.bytes = 300
        let resizer = ImageResizer(limits: limits)
        await #expect(throws: ImageError.tooManyBytes(600)) {
            try await resizer.resize(base64: String(repeating: "A", count: 800), to: 100)
        }
    }

    @Test(arguments: [(3_000, 1, 100, 100, 1), (1, 3_000, 100, 1, 100), (50, 40, 100, 50, 40), (101, 50, 100, 100, 50)])
    func `no side becomes shorter than one pixel`(width: Int, height: Int, edge: Int, newWidth: Int, newHeight: Int)
        throws
    {
        let bitmap = try SampleImages.screen(width: width, height: height).fitted(to: edge, isOpaque: true)

        #expect((bitmap.width, bitmap.height) == (newWidth, newHeight))
    }
}

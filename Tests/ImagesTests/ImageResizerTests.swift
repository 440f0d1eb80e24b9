import Testing

@testable import Images

@Suite struct ImageResizerTests {
    private let limits = ImageLimits()

    private func reduced(_ bytes: [UInt8], to edge: Int = ImageResizer.longEdge) throws -> ImageFile {
        try ImageFile(reading: bytes, within: limits).fitted(to: edge, within: limits)
    }

    private func png(_ raster: Bitmap) throws -> [UInt8] { try #require(PNG.file(of: raster, limit: 64 << 20)) }

    @Test func `what fits stays as it is, byte for byte`() async throws {
        let bytes = try png(Samples.screen(width: 400, height: 800))

        let (original, fitted) = try await ImageResizer().reduce(base64: Samples.base64(bytes), to: 1_568)

        #expect(original.bytes == bytes)
        #expect(fitted == original)
        #expect((original.width, original.height) == (400, 800))
    }

    @Test func `a screenshot gets the longest edge that was asked for, in its own proportions`() throws {
        let small = try reduced(png(Samples.screen(width: 1_290, height: 2_796)))

        #expect((small.width, small.height) == (723, 1_568))
        #expect(small.bytes.count <= limits.result)
        let opened = try ImageFile(reading: small.bytes, within: limits)
        #expect((opened.width, opened.height, opened.format) == (723, 1_568, small.format))
    }

    @Test func `the smaller of the two formats is chosen`() throws {
        let flat = try reduced(png(Samples.raster(2_000, 2_000) { _, _ in (200, 100, 50, 255) }), to: 1_000)
        let photo = try reduced(JPEG.file(of: Samples.noise(width: 1_200, height: 900), quality: 90), to: 300)

        #expect(flat.format == .png)
        #expect(photo.format == .jpeg)
    }

    @Test func `noise is brought below the limit, too`() throws {
        let bytes = try JPEG.file(of: Samples.noise(width: 2_400, height: 2_400), quality: 95)

        let small = try reduced(bytes)

        #expect(small.bytes.count <= limits.result)
        #expect(small.longEdge <= 1_568)
    }

    @Test func `colours stay what they are, in both formats`() throws {
        let raster = Samples.raster(2_000, 1_000) { _, _ in (30, 120, 240, 255) }
        for bytes in [try png(raster), try JPEG.file(of: raster, quality: 95)] {
            let small = try reduced(bytes, to: 500)
            let (opened, _) = try PNG.raster(of: small.bytes)

            #expect((opened.width, opened.height) == (500, 250))
            let pixel = opened.pixels.prefix(4).map(Int.init)
            for (is_, was) in zip(pixel, [30, 120, 240, 255]) { #expect(abs(is_ - was) <= 2) }
        }
    }

    @Test func `what is transparent lies on white, and what is invisible shows no colour`() throws {
        let bed = Samples.raster(4, 4) { x, _ in x < 2 ? (0, 0, 255, 0) : (0, 0, 255, 255) }
        let clear = try bed.fitted(to: 4, isOpaque: false)
        let half = try Samples.raster(2, 2) { _, _ in (0, 0, 0, 128) }.fitted(to: 1, isOpaque: false)

        #expect(Array(clear.pixels[0..<4]) == [255, 255, 255, 255])
        #expect(Array(clear.pixels[12..<16]) == [0, 0, 255, 255])
        #expect((126...128).contains(half.pixels[0]))
        #expect(half.pixels[3] == 255)
    }

    @Test func `a bomb is refused by its header alone`() {
        #expect(throws: ImageError.tooManyPixels(width: 30_000, height: 30_000)) {
            try ImageFile(reading: Samples.header(width: 30_000, height: 30_000), within: limits)
        }
        #expect(throws: ImageError.tooManyPixels(width: 100_000, height: 1)) {
            try ImageFile(reading: Samples.header(width: 100_000, height: 1), within: limits)
        }
    }

    @Test func `a damaged image says so, wherever it is cut`() throws {
        let bytes = try png(Samples.screen(width: 300, height: 300))
        for count in [9, 30, 45, bytes.count / 2] {
            #expect(throws: ImageError.self) { try reduced(Array(bytes.prefix(count)), to: 100) }
        }
        #expect(throws: ImageError.self) { try reduced([0xFF, 0xD8, 0xFF, 0xE0, 0, 0]) }
    }

    @Test func `bytes that were changed at random give a picture or an error`() throws {
        let raster = Samples.screen(width: 50, height: 40)
        let files = [try png(raster), try JPEG.file(of: raster, quality: 75)]
        var state: UInt64 = 7
        func next(_ limit: Int) -> Int {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Int(state >> 33) % limit
        }
        var pictures = 0
        for round in 0..<600 {
            var bytes = files[round % 2]
            for _ in 0..<1 + next(8) { bytes[3 + next(bytes.count - 3)] = UInt8(next(256)) }
            do throws(ImageError) {
                let file = try ImageFile(reading: bytes, within: limits)
                pictures += try file.fitted(to: 20, within: limits).longEdge <= 20 ? 1 : 0
            } catch {}
        }
        #expect((1..<600).contains(pictures))
    }

    @Test(arguments: [200, 1_568]) func `half an image is none, also where the whole would fit`(edge: Int) throws {
        let raster = Samples.screen(width: 800, height: 800)
        for bytes in [try JPEG.file(of: raster, quality: 80), try png(raster)] {
            #expect(throws: ImageError.self) { try reduced(Array(bytes.prefix(bytes.count / 2)), to: edge) }
            #expect(try reduced(bytes, to: edge).longEdge == min(edge, 800))
        }
    }

    @Test func `a JPEG with something behind its end is a picture`() throws {
        let bytes = try JPEG.file(of: Samples.screen(width: 80, height: 80), quality: 80) + Array("trailer".utf8)

        #expect(try reduced(bytes).bytes == bytes)
    }

    @Test(arguments: [
        ("UklGRiQAAABXRUJQVlA4", ImageError.unknownFormat), ("", .unknownFormat), ("not base64!", .notBase64),
    ])
    func `what is no PNG and no JPEG is refused`(base64: String, error: ImageError) async {
        await #expect(throws: error) { try await ImageResizer().reduce(base64: base64, to: 100) }
    }

    @Test func `bytes over the limit are not even decoded`() async {
        var limits = ImageLimits()
        limits.bytes = 300
        let reducer = ImageResizer(limits: limits)
        await #expect(throws: ImageError.tooManyBytes(600)) {
            try await reducer.reduce(base64: String(repeating: "A", count: 800), to: 100)
        }
    }

    @Test(arguments: [(3_000, 1, 100, 100, 1), (1, 3_000, 100, 1, 100), (50, 40, 100, 50, 40), (101, 50, 100, 100, 50)])
    func `no side becomes nothing`(width: Int, height: Int, edge: Int, newWidth: Int, newHeight: Int) throws {
        let raster = try Samples.screen(width: width, height: height).fitted(to: edge, isOpaque: true)

        #expect((raster.width, raster.height) == (newWidth, newHeight))
    }
}

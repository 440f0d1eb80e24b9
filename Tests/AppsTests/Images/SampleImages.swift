import FoundationEssentials

@testable import Apps

enum SampleImages {
    /// An image like a screen: flat areas with a few edges.
    static func screen(width: Int, height: Int) -> Bitmap {
        bitmap(width: width, height: height) { x, y in
            (x / 40 + y / 40) % 2 == 0 ? (250, 250, 250, 255) : (UInt8(y * 255 / height), 120, 40, 255)
        }
    }

    /// Noise, which no format compresses.
    static func noise(width: Int, height: Int) -> Bitmap {
        var state: UInt64 = 42
        return bitmap(width: width, height: height) { _, _ in
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return (UInt8(state >> 56), UInt8(state >> 48 & 255), UInt8(state >> 40 & 255), 255)
        }
    }

    static func bitmap(width: Int, height: Int, _ pixel: (Int, Int) -> (UInt8, UInt8, UInt8, UInt8)) -> Bitmap {
        var pixels: [UInt8] = []
        pixels.reserveCapacity(width * height * 4)
        for y in 0..<height {
            for x in 0..<width {
                let (blue, green, red, alpha) = pixel(x, y)
                pixels += [blue, green, red, alpha]
            }
        }
        return Bitmap(width: width, height: height, pixels: pixels)
    }

    /// Returns a PNG with the given size in its header and without image data.
    static func header(width: UInt32, height: UInt32) -> [UInt8] {
        let chunk = Array("IHDR".utf8) + bytes(width) + bytes(height) + [8, 6, 0, 0, 0]
        let data = Array("IDAT".utf8)
        return [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A] + bytes(13) + chunk + bytes(checksum(chunk))
            + bytes(0) + data + bytes(checksum(data))
    }

    private static func bytes(_ number: UInt32) -> [UInt8] {
        [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: number >> UInt32($0)) }
    }

    /// CRC-32 as in the PNG specification.
    private static func checksum(_ bytes: [UInt8]) -> UInt32 {
        ~bytes.reduce(UInt32.max) { sum, byte in
            (0..<8).reduce(sum ^ UInt32(byte)) { sum, _ in sum >> 1 ^ (sum & 1 == 1 ? 0xEDB8_8320 : 0) }
        }
    }

    static func base64(_ bytes: [UInt8]) -> String { Data(bytes).base64EncodedString() }
}
